package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/cluster/etcd"
	"github.com/slotkeeper/slotkeeper/cmd/internal/config"
	"github.com/slotkeeper/slotkeeper/cmd/internal/output"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/primary"
)

func newUninstallCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove everything of slotkeeper's from every node and from etcd",
		Long: `Stop every slotkeeper run first. Leads, then removes all mirrors and holds, the
markers on the slots of the primary (the slots stay), the fences, and the
ledger. A slot of a new primary that was not protected before its promotion goes
too, and that is said. It lists what it removed and what it could not; then the ledger stays
too, and the command can be run again. The extension, its files and data_dir
are left: DROP EXTENSION slotkeeper, and remove the others by hand.

Ends with 0 when nothing of slotkeeper's is left, 3 when a node refused, 4 when
a node did not answer, and 5 when a controller leads.`,
		Args: noArgs,
	}
	format := outputFlag(cmd, output.Table)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := loadWithFiles(cmd)
		if err != nil {
			return err
		}
		u := &uninstaller{config: loaded.Config}
		if err := u.run(cmd); err != nil {
			return err
		}
		if err := output.Write(cmd.OutOrStdout(), *format, u.result()); err != nil {
			return err
		}
		return quiet(u.code)
	}
	return cmd
}

// removal is one thing that was removed, or could not be.
type removal struct {
	Node    string `json:"node"` // "" for etcd
	What    string `json:"what"`
	Removed bool   `json:"removed"`
	Detail  string `json:"detail"`
}

type uninstaller struct {
	config *config.Config
	known  plan.Plan // what a controller would do now
	code   int
	done   []removal
}

func (u *uninstaller) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	st, err := leadStore(ctx, u.config, quietLogger(cmd.ErrOrStderr()))
	if err != nil {
		return storeError(err, u.config)
	}
	defer st.Close()
	elect := &elector{client: st.client, name: u.config.Name}
	defer elect.close()
	t, err := elect.TryCampaign(ctx)
	var held *etcd.NotLeaderError
	if errors.As(err, &held) {
		return exitf(exitNotLeader, "%s leads: stop it (and every other slotkeeper run) first", held.Holder.Name)
	}
	if err != nil {
		return storeError(err, u.config)
	}
	peers, err := readAll(ctx, u.config)
	if err != nil {
		return err
	}
	defer closeAll(peers)
	if err := u.judge(ctx, t, peers); err != nil {
		return err
	}
	u.nodes(ctx, t, peers)
	if u.code != exitOK {
		u.note("", "ledger", false, "kept, because something is left above; run the command again")
		return nil
	}
	if err := st.client.DeleteAll(ctx, t.Term); err != nil {
		return err
	}
	u.note("", "ledger", true, "")
	return nil
}

// judge has a controller decide, which knows the ledger: where there was a promotion
// since the last one, some slots of the new primary must not be found by a consumer.
func (u *uninstaller) judge(ctx context.Context, t *term, peers []*peer) error {
	var members cluster.Topology
	for _, p := range peers {
		members.Members = append(members.Members, p.member)
	}
	loop := newController(u.config, seen(members), nil, hclog.NewNullLogger())
	defer loop.Close()
	if err := loop.Begin(ctx, t); err != nil {
		return err
	}
	u.known, _ = loop.Plan(ctx)
	return ctx.Err()
}

// unproven: such a slot of the primary, which is dropped.
func (u *uninstaller) unproven(node string, s cluster.Slot) bool {
	return node == u.known.Primary && s.Marker.Kind == cluster.MarkMirror && u.known.Memory.Slots[s.Name].Unproven
}

// nodes removes in an order in which nothing that is left is ever unprotected:
// mirrors, then what holds for them, then markers, and the fence last of all.
func (u *uninstaller) nodes(ctx context.Context, t *term, peers []*peer) {
	var ready []*peer
	for _, p := range peers {
		switch {
		case p.err != nil:
			u.fail(p.member.Name, "everything of slotkeeper's", exitUnknown, explain(p.err))
		case u.raise(ctx, t, p):
			ready = append(ready, p)
		}
	}
	for _, p := range ready {
		u.own(ctx, t, p)
	}
	for _, kinds := range [][]cluster.MarkerKind{
		{cluster.MarkMirror},
		{cluster.MarkWAL, cluster.MarkHold},
		{cluster.MarkOriginal},
	} {
		for _, p := range ready {
			u.drop(ctx, t, p, kinds)
		}
	}
	for _, p := range ready {
		u.lower(ctx, t, p)
	}
}

// fence is what a call shows to a node. Each node gets its own timeline: a
// standby that is behind a switch of timelines is cleaned all the same.
func (u *uninstaller) fence(t *term, p *peer) cluster.Fence {
	return cluster.Fence{
		Scope: u.config.Scope, Store: t.Store(), Epoch: t.Epoch(), Owner: u.config.Name,
		SystemID: p.read.Node.SystemID, Timeline: p.read.Node.Timeline,
	}
}

func (u *uninstaller) raise(ctx context.Context, t *term, p *peer) bool {
	answer, err := p.session.RaiseFence(ctx, u.fence(t, p))
	switch {
	case err != nil:
		u.fail(p.member.Name, "everything of slotkeeper's", exitUnknown, explain(err))
		return false
	case answer != "raised" && answer != "same":
		u.fail(p.member.Name, "everything of slotkeeper's", exitNotSafe, fenceText(answer))
		return false
	}
	// Behind the fence nobody else makes or drops: read what there is now.
	fresh, err := p.session.Read(ctx)
	if err != nil {
		u.fail(p.member.Name, "everything of slotkeeper's", exitUnknown, explain(err))
		return false
	}
	p.read = fresh
	return true
}

func fenceText(answer string) string {
	switch cluster.Code(answer) {
	case cluster.CodeForeignEpoch:
		return "foreign_epoch: its fence belongs to another scope or another etcd; use that one's configuration; where it is gone for good, run SELECT slotkeeper.remove_fence(fence) FROM slotkeeper.node() on this node, and this command again"
	case cluster.CodeFenced:
		return "fenced: another controller has led since"
	}
	return answer
}

// own has the slots of a primary that were mirrors until its promotion count as its
// originals. No controller has marked them so where none has run since, or where they
// are not selected any more. They are their consumers' all the same, and stay.
func (u *uninstaller) own(ctx context.Context, t *term, p *peer) {
	var names []string
	var incarnations []cluster.Incarnation
	at := map[string]*cluster.Slot{}
	for i, s := range p.read.Slots {
		if s.Marker != nil && s.Marker.Scope == u.config.Scope && s.Marker.Kind == cluster.MarkMirror && s.Invalidated == "" && !u.unproven(p.member.Name, s) {
			names, incarnations = append(names, s.Name), append(incarnations, s.Incarnation)
			at[s.Name] = &p.read.Slots[i]
		}
	}
	if p.read.Node.InRecovery || len(names) == 0 || !u.leads(t, p) {
		return
	}
	if u.known.Primary != p.member.Name {
		u.fail(p.member.Name, fmt.Sprintf("slots %q", names), exitNotSafe,
			"marked as mirrors on a node that takes writes and is not known to be the only primary: whether they were protected cannot be told; see slotkeeper status, and run the command again")
		for _, s := range at {
			s.Marker = nil // neither dropped nor its consumer's
		}
		return
	}
	rows, err := primary.Mark(ctx, p.session, u.fence(t, p), names, incarnations)
	if err != nil {
		u.fail(p.member.Name, fmt.Sprintf("slots %q", names), exitUnknown, explain(err))
	}
	for _, row := range rows {
		if s := at[row.Name]; s != nil && (row.Code == cluster.CodeMarked || row.Code == cluster.CodeUnchanged) {
			s.Marker = &cluster.Marker{Scope: u.config.Scope, Kind: cluster.MarkOriginal}
			delete(at, row.Name)
		} else if s != nil {
			u.fail(p.member.Name, "marker of "+row.Name, exitNotSafe, oneLine(withHint(fmt.Sprintf("%s: %s", row.Code, row.Detail), row.Hint)))
		}
	}
	for _, s := range at {
		s.Marker = nil // not to be dropped
	}
}

func (u *uninstaller) drop(ctx context.Context, t *term, p *peer, kinds []cluster.MarkerKind) {
	var names []string
	what, lost := map[string]cluster.MarkerKind{}, map[string]bool{}
	for _, s := range p.read.Slots {
		if s.Marker == nil || s.Marker.Scope != u.config.Scope {
			continue
		}
		for _, kind := range kinds {
			if s.Marker.Kind == kind {
				names = append(names, s.Name)
				what[s.Name] = kind
				lost[s.Name] = u.unproven(p.member.Name, s)
			}
		}
	}
	if len(names) == 0 || !u.leads(t, p) {
		return
	}
	rows, err := p.session.Drop(ctx, u.fence(t, p), names)
	if err != nil {
		u.fail(p.member.Name, fmt.Sprintf("slots %q", names), exitUnknown, explain(err))
		return
	}
	for _, row := range rows {
		text := fmt.Sprintf("%s %s", what[row.Name], row.Name)
		switch row.Code {
		case cluster.CodeDropped:
			if lost[row.Name] {
				row.Detail = "it was not protected when this node was promoted: its consumer must know that rows are missing, and start anew"
			}
			u.note(p.member.Name, text, true, row.Detail)
		case cluster.CodeUnchanged: // it went by itself since it was read
		default:
			u.fail(p.member.Name, text, exitNotSafe, oneLine(withHint(fmt.Sprintf("%s: %s", row.Code, row.Detail), row.Hint)))
		}
	}
}

func (u *uninstaller) lower(ctx context.Context, t *term, p *peer) {
	if !u.leads(t, p) {
		return
	}
	answer, err := p.session.RemoveFence(ctx, u.fence(t, p))
	switch {
	case err != nil:
		u.fail(p.member.Name, "fence", exitUnknown, explain(err))
	case answer == "removed":
		u.note(p.member.Name, "fence", true, "")
	case answer != "absent":
		u.fail(p.member.Name, "fence", exitNotSafe, fenceText(answer))
	}
}

// leads looks at the lease before each call, as the daemon does.
func (u *uninstaller) leads(t *term, p *peer) bool {
	if t.Valid(time.Now()) {
		return true
	}
	u.fail(p.member.Name, "the rest", exitNotLeader, "the leadership was lost")
	return false
}

func (u *uninstaller) note(node, what string, removed bool, detail string) {
	u.done = append(u.done, removal{node, what, removed, detail})
}

// fail remembers the first kind of failure as the exit code.
func (u *uninstaller) fail(node, what string, code int, detail string) {
	u.note(node, what, false, detail)
	if u.code == exitOK {
		u.code = code
	}
}

func (u *uninstaller) result() output.Result {
	r := output.Result{
		Document: map[string]any{"complete": u.code == exitOK, "items": u.done},
		Header:   []string{"node", "what", "removed", "detail"},
	}
	for _, d := range u.done {
		node, removed := d.Node, "no"
		if node == "" {
			node = "etcd"
		}
		if d.Removed {
			removed = "yes"
		}
		r.Rows = append(r.Rows, []string{node, d.What, removed, d.Detail})
	}
	return r
}
