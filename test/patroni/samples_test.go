//go:build patroni

package patroni

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
)

// Patroni passes over keys that it does not know without a word. So each key of its
// sample must be one that this version of Patroni has in its source; the settings of
// the server are looked at by the server, which every other test starts with them.
func TestSamplesHaveNoKeyThatPatroniDoesNotKnow(t *testing.T) {
	t.Parallel()
	version := os.Getenv(versionVariable)
	library, err := lab.FindPatroni(version)
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir(filepath.Join(library, "patroni"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := yaml.Unmarshal(sample(t, version), &read); err != nil {
		t.Fatal(err)
	}
	keys := 0
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				keys++
				if path != "bootstrap.initdb" && !strings.Contains(source.String(), "'"+key+"'") && !strings.Contains(source.String(), `"`+key+`"`) {
					t.Errorf("Patroni's source has no %s.%s", path, key)
				}
				if key != "parameters" {
					look(strings.TrimPrefix(path+"."+key, "."), below)
				}
			}
		case []any:
			for _, item := range v {
				look(path, item)
			}
		}
	}
	look("", read)
	if keys < 40 {
		t.Errorf("only %d keys were looked at", keys)
	}
}
