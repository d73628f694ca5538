package controller

import (
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
)

// caught makes an error of a panic and logs where it came from. It is for the
// function that recovered it: there the stack still shows that.
func caught(log hclog.Logger, what string, p any) error {
	err := fmt.Errorf("%s panicked: %v", what, p)
	log.Error("this is a bug in slotkeeper, please report it", "error", err, "stack", string(debug.Stack()))
	return err
}
