// Package httpapi serves what the controller knows: /status, /metrics,
// /liveness, /readiness and a page for people; and POST /sync, which asks for a
// cycle. It decides nothing: what it shows is the one Status document.
//
// The listener is bound by Listen, before anything else of the daemon begins,
// so that a taken port is an error at start.
//
// It may import cluster, controller/plan and controller/status.
package httpapi
