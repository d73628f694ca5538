package plan

// rules, in the order in which reasons apply: the first that finds something
// gives the pair's verdict. A pair that none speaks of is SAFE.
var rules = []func(*cycle, *pair) *finding{
	lostRule,
	silentRule,
	endpointRule,
	timelineRule,
	permanentRule,
	notOursRule,
	inUseRule,
	walLevelRule,
	pluginRule,
	roomRule,
	willDropRule,
	twoPhaseRule,
	gapRule,
	holdRule,
	consumerAheadRule,
	aheadRule,
	fencedRule,
	stillRule,
	absentRule,
	unfitRule,
}

// serverRules are those of a pair that is the server's.
var serverRules = []func(*cycle, *pair) *finding{
	lostRule,
	silentRule,
	endpointRule,
	timelineRule,
	leftoverRule,
	copyMissingRule,
	copyLostRule,
	consumerAheadRule,
	copyUnreadyRule,
	copyAheadRule,
}

// conditionRules look for what deserves a look beside the verdicts, while there
// is a primary.
var conditionRules = []func(*cycle){
	(*cycle).holdMissing,
	(*cycle).holdAge,
	(*cycle).pinnedXmin,
	(*cycle).foreignFences,
	(*cycle).feedbackOff,
	(*cycle).physicalSlots,
	(*cycle).orphanSlots,
	(*cycle).unselected,
	(*cycle).stoppedWorkers,
	(*cycle).failoverConditions,
	(*cycle).gateConditions,
	(*cycle).idleConditions,
	(*cycle).managerConditions,
	(*cycle).droppedByPatroni,
	(*cycle).vanishedMirrors,
	(*cycle).primaryBehind,
	(*cycle).stuckRestarts,
	(*cycle).consumersAhead,
	(*cycle).inactiveSlots,
	(*cycle).missingSlots,
}

func (c *cycle) conditions() {
	for _, rule := range conditionRules {
		rule(c)
	}
}
