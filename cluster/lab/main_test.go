package lab

import (
	"testing"

	"go.uber.org/goleak"
)

// A lab that is closed leaves no goroutine behind either.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
