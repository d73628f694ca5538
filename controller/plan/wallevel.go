package plan

import "fmt"

func walLevelRule(_ *cycle, pr *pair) *finding {
	if level := pr.fact.Value.Node.WalLevel; level != "logical" {
		return &finding{Unsafe, ReasonWalLevel, fmt.Sprintf("wal_level is %s on %s: a logical slot there would keep the server from starting", orUnknown(level), pr.node),
			"set wal_level = logical there and restart it"}
	}
	return nil
}
