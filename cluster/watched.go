package cluster

// Watched is what waiting on a node came to. Neither Changed nor Reached: the
// waiting ended by its own limit, or was called back.
type Watched struct {
	Token   string // to go on with
	Changed bool   // a slot, the role or the timeline is no longer as the token before said
	Reached bool   // the position that was waited for is replayed
}
