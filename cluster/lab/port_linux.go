package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// reserved are the ports that this process has given away, each with a socket in
// the kernel's abstract namespace by which other processes see that it is taken
// also while nobody listens on it: before its server starts, and between two
// starts. They end with the process.
var reserved struct {
	sync.Mutex
	sockets []net.Listener
}

// FreePort gives a TCP port on loopback that nobody listens on and that no lab on
// this machine has been given.
//
// It stays below the range from which the kernel takes ports for outgoing
// connections: one of those could sit on the port before the server does.
func FreePort() (int, error) {
	for range 200 {
		port := 10000 + rand.IntN(22000)
		socket, err := net.Listen("unix", fmt.Sprintf("@slotkeeper-lab-port-%d", port))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			_ = socket.Close() // it has no peers and no file
			continue
		}
		reserved.Lock()
		reserved.sockets = append(reserved.sockets, socket)
		reserved.Unlock()
		return port, listener.Close()
	}
	return 0, errors.New("looking for a free port on 127.0.0.1: none of 200 tries was free")
}
