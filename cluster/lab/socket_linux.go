package lab

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holdsDiallingEnd reports whether a process has the other end of a connection
// that was accepted on loopback.
func holdsDiallingEnd(pid int, accepted net.Conn) bool {
	inode := inodeOf(accepted.RemoteAddr(), accepted.LocalAddr())
	if inode == "" {
		return false
	}
	fds, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

// inodeOf finds a socket by its two addresses; "" where there is none.
func inodeOf(local, remote net.Addr) string {
	file, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it is only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == hexAddr(local) && fields[2] == hexAddr(remote) {
			return fields[9]
		}
	}
	return ""
}

// hexAddr is an IPv4 address as the kernel prints it: the address as one number
// in the machine's own order, which is little-endian wherever the lab runs.
func hexAddr(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return ""
	}
	ip := tcp.IP.To4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], tcp.Port)
}
