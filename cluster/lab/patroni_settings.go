package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What stands in a sample for what each installation has of its own.
const (
	sampleNetwork = "10.0.0.0/24"
	sampleProgram = "/usr/local/bin/slotkeeper"
	sampleConfig  = "/etc/slotkeeper/slotkeeper.yaml"
)

// readSample reads a member's configuration. A key that stands there twice is an
// error.
func readSample(text []byte) (map[string]any, error) {
	var sample map[string]any
	if err := yaml.Unmarshal(text, &sample); err != nil {
		return nil, fmt.Errorf("reading the sample of Patroni's configuration: %w", err)
	}
	for _, section := range []string{"bootstrap", "postgresql", "restapi", "etcd3"} {
		if _, ok := sample[section].(map[string]any); !ok {
			return nil, fmt.Errorf("reading the sample of Patroni's configuration: it has no section %s", section)
		}
	}
	return sample, nil
}

// settings is the sample with this member's addresses, ports, paths and names, and
// with what makes tests quick and lets them in.
func (m *PatroniMember) settings() map[string]any {
	p := m.patroni
	listen := fmt.Sprintf("127.0.0.1:%d", m.node.port)
	rest := m.restAddress()
	hosts := make([]any, 0, 1)
	for _, url := range p.etcd.Endpoints() {
		_, host, _ := strings.Cut(url, "://")
		hosts = append(hosts, host)
	}
	s := merge(p.sample, map[string]any{
		"scope": p.options.Scope, "name": m.node.name,
		"etcd3":   map[string]any{"hosts": hosts},
		"restapi": merge(map[string]any{"listen": rest, "connect_address": rest}, p.options.REST),
		"postgresql": map[string]any{
			"listen": listen, "connect_address": listen,
			"data_dir": m.node.data, "bin_dir": p.cluster.bin, "pgpass": m.node.data + ".pgpass",
			"parameters": map[string]any{
				"unix_socket_directories": m.node.baseSettings()["unix_socket_directories"],
				"logging_collector":       "off",
			},
			"basebackup": []any{map[string]any{"checkpoint": "fast"}, "no-sync"},
		},
	})
	if p.options.CTL != nil {
		s["ctl"] = p.options.CTL
	}
	if tags := p.options.Tags[m.node.name]; tags != nil {
		s["tags"] = merge(object(s["tags"]), tags)
	}
	boot := object(s["bootstrap"])
	boot["dcs"] = m.dynamic(object(boot["dcs"])) // in its place: what was taken out must stay out
	boot["initdb"] = append(list(boot["initdb"]), "no-sync")
	s["bootstrap"] = boot
	server := object(s["postgresql"])
	server["pg_hba"] = m.access(list(server["pg_hba"]))
	m.gated(server)
	s["postgresql"] = server
	return s
}

// dynamic is the sample's dynamic configuration on a small machine, as quick as
// Patroni allows, with what the test wants on top.
func (m *PatroniMember) dynamic(sample map[string]any) map[string]any {
	parameters := map[string]any{}
	for name, value := range m.node.baseSettings() {
		switch name {
		case "listen_addresses", "port", "unix_socket_directories", "hot_standby":
		default:
			parameters[name] = value
		}
	}
	small := map[string]any{"postgresql": map[string]any{"parameters": parameters}}
	quick := map[string]any{"ttl": 20, "loop_wait": 1, "retry_timeout": 9}
	return merge(merge(merge(small, sample), quick), m.patroni.options.Config)
}

// access are the sample's lines in the lab's network, after those by which the
// lab's own sessions come in.
func (m *PatroniMember) access(sample []any) []any {
	lines := []any{"host all " + m.patroni.options.Trusted + " 127.0.0.1/32 trust"}
	for _, line := range sample {
		lines = append(lines, strings.ReplaceAll(fmt.Sprint(line), sampleNetwork, "127.0.0.1/32"))
	}
	return lines
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return maps.Clone(o)
}

func list(v any) []any {
	l, _ := v.([]any)
	return append([]any(nil), l...)
}

// gateFiles are what the members' pre_promote runs: a copy of the program and a
// configuration, both where the servers' user may read them.
type gateFiles struct{ program, config string }

func (p *Patroni) installGate() error {
	if p.options.Gate == "" {
		return nil
	}
	program, err := os.ReadFile(p.options.Gate)
	if err != nil {
		return fmt.Errorf("installing the gate: %w", err)
	}
	p.gate = gateFiles{filepath.Join(p.dir, "gate"), filepath.Join(p.dir, "gate.yaml")}
	if err := os.WriteFile(p.gate.program, program, 0o755); err != nil {
		return fmt.Errorf("installing the gate: %w", err)
	}
	return p.ConfigureGate("")
}

// ConfigureGate writes the configuration that the members' gates read at their next
// question; more are further lines of it.
func (p *Patroni) ConfigureGate(more string) error {
	text := daemonConfig(DaemonOptions{Name: "gate", Patroni: p, More: more}, 0)
	return p.WriteGateConfig(text)
}

// WriteGateConfig puts a text in place of the gates' configuration.
func (p *Patroni) WriteGateConfig(text string) error {
	if err := os.WriteFile(p.gate.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the gate's configuration: %w", err)
	}
	return p.cluster.own(p.gate.config)
}

// gated has pre_promote run the lab's program, or nothing.
func (m *PatroniMember) gated(server map[string]any) {
	command, _ := server["pre_promote"].(string)
	gate := m.patroni.gate
	if gate.program == "" || command == "" {
		delete(server, "pre_promote")
		return
	}
	name := fmt.Sprint(m.patroni.sample["name"])
	// Patroni splits the command as a shell would.
	quoted := "'" + strings.ReplaceAll(m.node.name, "'", `'"'"'`) + "'"
	server["pre_promote"] = strings.NewReplacer(sampleProgram, gate.program, sampleConfig, gate.config, "--node "+name, "--node "+quoted).Replace(command)
}
