package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Document is a status of the controller. The lab reads of it what an operator
// would who asks whether slots are SAFE; Raw is for whoever reads more.
type Document struct {
	Raw []byte `json:"-"` // the whole, as it came

	ObservedAt time.Time `json:"observed_at"`
	Primary    *struct{} `json:"primary"` // nil where there is none
	Members    []member  `json:"members"`
	Slots      []slot    `json:"slots"`
}

type member struct {
	Node  string `json:"node"`
	Error string `json:"error"`
}

type slot struct {
	Name     string `json:"name"`
	Standbys []pair `json:"standbys"`
}

type pair struct {
	Node    string `json:"node"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

const safe = "SAFE"

func readDocument(raw []byte) (Document, error) {
	d := Document{Raw: raw}
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("reading the controller's status: %w", err)
	}
	return d, nil
}

// notSafe names the first thing that keeps the pairs from being SAFE, "" for none.
func (d Document) notSafe(slots, standbys []string) string {
	if d.Primary == nil {
		text := "the controller sees no primary"
		for _, member := range d.Members {
			if member.Error != "" {
				text += fmt.Sprintf("; %s: %s", member.Node, member.Error)
			}
		}
		return text
	}
	for _, member := range d.Members {
		if slices.Contains(standbys, member.Node) && member.Error != "" {
			return fmt.Sprintf("standby %q did not answer the controller: %s", member.Node, member.Error)
		}
	}
	for _, slot := range slots {
		for _, standby := range standbys {
			if verdict, why := d.verdict(slot, standby); verdict != safe {
				return fmt.Sprintf("slot %q on standby %q is %s (%s)", slot, standby, verdict, why)
			}
		}
	}
	return ""
}

func (d Document) verdict(slot, standby string) (verdict, why string) {
	for _, s := range d.Slots {
		if s.Name != slot {
			continue
		}
		for _, p := range s.Standbys {
			if p.Node == standby {
				return p.Verdict, strings.TrimSpace(p.Reason + ": " + p.Message)
			}
		}
	}
	return "absent", "the controller does not show it"
}
