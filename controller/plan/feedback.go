package plan

import "fmt"

// feedbackOff: no mirror needs feedback, but queries on the standby do.
func (c *cycle) feedbackOff() {
	for _, name := range c.standbys {
		read, ok := c.readable(name)
		if !ok || read.Node.Feedback {
			continue
		}
		c.condition(Condition{Code: CondFeedbackOff, Subject: name, Severity: Warning,
			Message: fmt.Sprintf("hot_standby_feedback is off on %s", name),
			Hint:    "slots are safe without it (the hold protects them); queries on the standby may be cancelled"})
	}
}
