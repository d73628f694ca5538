package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates, good for a day, for servers on loopback and
// their clients. All files lie in its folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

// NewAuthority makes one, with its own certificate in ca.pem.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	err := a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a, err
}

// File is the path of a file that it made: ca.pem, NAME.pem, NAME.key.
func (a *Authority) File(name string) string { return filepath.Join(a.dir, name) }

// Issue writes NAME.pem and NAME.key for a client of that name, and for a server
// on 127.0.0.1 and ::1.
func (a *Authority) Issue(name string) error {
	return a.issue(name, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}})
}

func (a *Authority) issue(name string, c *x509.Certificate) error {
	if err := a.sign(name, c); err != nil {
		return fmt.Errorf("making the certificate %s: %w", a.File(name+".pem"), err)
	}
	return nil
}

// sign: the first one that is issued signs itself.
func (a *Authority) sign(name string, c *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	a.last++
	c.SerialNumber, c.Subject = big.NewInt(a.last), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
		a.key = key
	}
	return errors.Join(a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", keyDER))
}

func (a *Authority) write(name, kind string, der []byte) error {
	return os.WriteFile(a.File(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
