package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// PatroniOptions say what kind of Patroni cluster is started.
type PatroniOptions struct {
	Version string   // 3.0, 4.0 or 4.1; "" is DefaultPatroni
	Scope   string   // "" is lab
	Names   []string // of the members; none: node1, node2 and node3
	// Sample is a member's configuration in YAML. The lab puts its own addresses,
	// ports, paths and names in place of what stands there, and what suits a small
	// machine beside it.
	Sample []byte
	// Trusted are the roles that come in without a password; "" is postgres,slotkeeper.
	Trusted string
	// Gate is the program slotkeeper. Where it is given the sample's pre_promote
	// runs it; else members are promoted unasked.
	Gate string
	// Config is the dynamic configuration, over the lab's own: mappings are
	// merged, and a value of nil takes a key out.
	Config map[string]any
	Tags   map[string]map[string]any // per member
	REST   map[string]any            // the section restapi of every member, over the lab's own
	CTL    map[string]any            // the section ctl: how the members ask one another
	IPv6   bool                      // the REST API listens on ::1
}

// DefaultPatroni is the version that is started when nothing else is asked for.
const DefaultPatroni = "3.0"

// PatroniMajor is the major version of PostgreSQL that the suite of Debian has
// which packs this version of Patroni.
func PatroniMajor(version string) (int, error) {
	switch version {
	case "", DefaultPatroni:
		return 15, nil
	case "4.0":
		return 17, nil
	case "4.1":
		return 18, nil
	}
	return 0, fmt.Errorf("Patroni %s is not one that test/servers.sh knows: 3.0, 4.0 and 4.1 are", version)
}

// Patroni is a cluster whose members are kept by real Patroni, with a real etcd.
type Patroni struct {
	cluster *Cluster
	dir     string // of its members and of its gate: a lab may hold several
	options PatroniOptions
	library string // what PYTHONPATH names
	sample  map[string]any
	gate    gateFiles
	etcd    *Etcd
	members []*PatroniMember
}

// StartPatroni starts etcd and the members, side by side, and returns when one
// leads and all others stream. The cluster's servers must be of the major version
// that PatroniMajor says. End it with Close, before the cluster's.
func (c *Cluster) StartPatroni(ctx context.Context, options PatroniOptions) (*Patroni, error) {
	if options.Version == "" {
		options.Version = DefaultPatroni
	}
	if options.Scope == "" {
		options.Scope = "lab"
	}
	if options.Trusted == "" {
		options.Trusted = "postgres," + RoleName
	}
	if len(options.Names) == 0 {
		options.Names = []string{"node1", "node2", "node3"}
	}
	library, err := FindPatroni(options.Version)
	if err != nil {
		return nil, err
	}
	p := &Patroni{cluster: c, options: options, library: library}
	if p.sample, err = readSample(options.Sample); err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Patroni) start(ctx context.Context) error {
	var err error
	p.dir = filepath.Join(p.cluster.dir, p.options.Scope)
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of Patroni's cluster: %w", err)
	}
	if err := p.cluster.own(p.dir); err != nil {
		return err
	}
	if p.etcd, err = StartEtcd(ctx, EtcdOptions{Dir: p.cluster.dir, Members: 1}); err != nil {
		return err
	}
	if err := p.installGate(); err != nil {
		return err
	}
	for _, name := range p.options.Names {
		m, err := p.newMember(name)
		if err != nil {
			return err
		}
		p.members = append(p.members, m)
	}
	for _, m := range p.members {
		if err := m.Start(ctx); err != nil {
			return err
		}
	}
	return p.WaitStreaming(ctx)
}

// FindPatroni looks where test/servers.sh unpacks Patroni, and gives the folder that
// PYTHONPATH must name.
func FindPatroni(version string) (string, error) {
	if version == "" {
		version = DefaultPatroni
	}
	var tried []string
	for _, cache := range caches() {
		dir := filepath.Join(cache, "postgresql", "patroni-"+version, "usr/lib/python3/dist-packages")
		if _, err := os.Stat(filepath.Join(dir, "patroni", "__init__.py")); err == nil {
			return filepath.EvalSymlinks(dir)
		}
		tried = append(tried, dir)
	}
	return "", fmt.Errorf("Patroni %s is not in %s: test/servers.sh patroni-%s gets it", version, strings.Join(tried, " nor in "), version)
}

// Version is the version of Patroni, as it was asked for.
func (p *Patroni) Version() string { return p.options.Version }

// Scope is the name that Patroni has for the cluster.
func (p *Patroni) Scope() string { return p.options.Scope }

// Library is what PYTHONPATH names for this version of Patroni.
func (p *Patroni) Library() string { return p.library }

// Etcd is where Patroni keeps its keys, below /service/ and the scope.
func (p *Patroni) Etcd() *Etcd { return p.etcd }

// Members gives all members, running or not.
func (p *Patroni) Members() []*PatroniMember { return p.members }

// Nodes gives the servers of all members.
func (p *Patroni) Nodes() []*Node {
	nodes := make([]*Node, 0, len(p.members))
	for _, m := range p.members {
		nodes = append(nodes, m.node)
	}
	return nodes
}

// Member finds a member by its name; nil where there is none.
func (p *Patroni) Member(name string) *PatroniMember {
	for _, m := range p.members {
		if m.node.name == name {
			return m
		}
	}
	return nil
}

// Leader waits until a member has the leader key and its server takes writes; in a
// standby cluster, until it streams from the other cluster.
func (p *Patroni) Leader(ctx context.Context) (*PatroniMember, error) {
	var leader *PatroniMember
	err := poll(ctx, 20*time.Millisecond, "Patroni to have a leader", func() (bool, error) {
		name, err := p.LeaderKey(ctx)
		leader = p.Member(name)
		return err == nil && leader != nil && p.leads(ctx, leader), nil
	})
	return leader, err
}

// leads reports whether the server of the member with the leader key does what a
// leader's has to.
func (p *Patroni) leads(ctx context.Context, m *PatroniMember) bool {
	var config struct {
		Remote map[string]any `json:"standby_cluster"`
	}
	text, err := p.Key(ctx, "config")
	if err != nil || json.Unmarshal([]byte(text), &config) != nil {
		return false
	}
	if config.Remote != nil {
		return m.follows(ctx)
	}
	return m.writable(ctx)
}

// Others gives all members but one.
func (p *Patroni) Others(than *PatroniMember) []*PatroniMember {
	var others []*PatroniMember
	for _, m := range p.members {
		if m != than {
			others = append(others, m)
		}
	}
	return others
}

// WaitStreaming waits until one member leads and every other one that runs
// streams from it, on the leader's timeline.
func (p *Patroni) WaitStreaming(ctx context.Context) error {
	what := "no member leads"
	err := poll(ctx, 50*time.Millisecond, "the members to stream", func() (bool, error) {
		var missing []string
		name, err := p.LeaderKey(ctx)
		leader := p.Member(name)
		if err != nil || leader == nil || !p.leads(ctx, leader) {
			what = "no member leads"
			return false, nil
		}
		streaming, err := leader.node.DB("").Strings(ctx, "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'")
		if err != nil {
			return false, nil // it has just ceased to be one
		}
		for _, m := range p.Others(leader) {
			if !m.Running() {
				continue
			}
			if !containsString(streaming, m.node.name) && !m.follows(ctx) {
				missing = append(missing, m.node.name)
			}
		}
		what = fmt.Sprintf("%s leads, and %s do not stream", name, strings.Join(missing, ", "))
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s; the last messages:\n%s", err, what, p.LogTail(8))
	}
	return nil
}

func containsString(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// LogTail gives the last lines of each member's messages.
func (p *Patroni) LogTail(lines int) string {
	var text strings.Builder
	for _, m := range p.members {
		fmt.Fprintf(&text, "%s:\n%s\n", m.node.name, m.LogTail(lines))
	}
	return text.String()
}

// Close kills all of it.
func (p *Patroni) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs := make([]error, len(p.members)+1)
	var group sync.WaitGroup
	for i, m := range p.members {
		group.Go(func() { errs[i] = m.Kill(ctx) })
	}
	group.Wait()
	if p.etcd != nil {
		errs[len(p.members)] = p.etcd.Close()
	}
	return errors.Join(errs...)
}

// EachMember does the same with all members at once.
func (p *Patroni) EachMember(ctx context.Context, do func(context.Context, *PatroniMember) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range p.members {
		group.Go(func() error { return do(ctx, m) })
	}
	return group.Wait()
}

// merge lays one mapping over another, as Patroni does with a PATCH.
func merge(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	for name, value := range over {
		below, isMap := merged[name].(map[string]any)
		above, both := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, name)
		case isMap && both:
			merged[name] = merge(below, above)
		default:
			merged[name] = value
		}
	}
	return merged
}
