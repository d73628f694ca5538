package httpapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageData is what the page shows; html/template escapes every name in it.
type pageData struct {
	Status    status.Status
	Available bool
	Age       string
	Rows      []pageRow
}

type pageRow struct {
	Slot, Database, Plugin, Standby string
	Verdict, Reason, Message, Hint  string
	Confirmed, Lag, Proof           string
}

func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	data := pageData{}
	data.Status, data.Available = h.source.Status()
	if data.Available {
		data.Age = h.opts.Now().Sub(data.Status.ObservedAt).Round(100 * time.Millisecond).String()
	}
	for _, slot := range data.Status.Slots {
		for _, p := range slot.Standbys {
			data.Rows = append(data.Rows, rowOf(slot, p))
		}
		if len(slot.Standbys) == 0 {
			data.Rows = append(data.Rows, pageRow{Slot: slot.Name, Database: slot.Database, Plugin: slot.Plugin, Message: "no standby"})
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, data); err != nil {
		fail(w, http.StatusInternalServerError, "the page cannot be made: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	_, _ = w.Write(b.Bytes()) // the client is gone: nobody is left to tell
}

func rowOf(slot status.Slot, p status.Standby) pageRow {
	row := pageRow{
		Slot: slot.Name, Database: slot.Database, Plugin: slot.Plugin, Standby: p.Node,
		Verdict: string(p.Verdict), Reason: string(p.Reason), Message: p.Message, Hint: p.Hint,
	}
	present(p.Mirror, func(m cluster.Position) { row.Confirmed = m.Confirmed.String() })
	present(p.LagBytes, func(v int64) { row.Lag = strconv.FormatInt(v, 10) })
	present(p.ProofAge, func(v float64) { row.Proof = strconv.FormatFloat(v, 'f', 1, 64) + " s" })
	return row
}
