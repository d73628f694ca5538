package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// forget has the member that ?node= names given up.
func (h *handler) forget(w http.ResponseWriter, r *http.Request) {
	node := r.URL.Query().Get("node")
	if node == "" {
		fail(w, http.StatusBadRequest, "which member? POST /forget?node=NAME")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.opts.SyncTimeout)
	defer cancel()
	err := h.source.Forget(ctx, node)
	var refused interface{ Refused() bool }
	switch {
	case err == nil:
		h.status(w, r)
	case errors.As(err, &refused) && refused.Refused():
		fail(w, http.StatusUnprocessableEntity, err.Error())
	case h.opts.NotLeading(err):
		fail(w, http.StatusConflict, "this controller does not lead"+h.leaderName())
	case errors.Is(err, context.DeadlineExceeded):
		fail(w, http.StatusGatewayTimeout, fmt.Sprintf("no cycle ended within %s", h.opts.SyncTimeout))
	default:
		fail(w, http.StatusServiceUnavailable, "the cycle failed: "+err.Error())
	}
}
