// SPDX-License-Identifier: Apache-2.0

package webhook

import "time"

// ClientAuth restricts who may call the hooks of a [Server]. Without it, any client that reaches the
// server may call them. An API server sends credentials only if its configuration says so: package
// apiserverauth writes that configuration. For each webhook, the API server sends a client certificate,
// a token or a password. It can combine a certificate with a token or a password.
//
// If several kinds of credentials are configured, a call needs only one of them. So you can
// switch to another kind without a failed call, and API servers can use different kinds. The
// server is then only as safe as the weakest kind, so configure only one in the long run.
//
// A call without valid credentials is answered 401 Unauthorized. A call with a valid client
// certificate that is not among Names is answered 403 Forbidden. Both happen before the body is
// read, and both are failures to decide: under failurePolicy Ignore, the object is admitted. Probes
// need no credentials.
//
// The server reads the files again while it runs. If a file is invalid at the start, Start fails.
// Later, the server keeps the last valid content and logs the error. Emptying a file therefore
// revokes nothing: replace its content.
type ClientAuth struct {
	// CAFile is a PEM file with the certificates of the CAs that sign client certificates (mTLS).
	// To replace a CA, keep the old and the new one in the file for a while: an API server needs
	// five minutes to see its new certificate. Once a CA is removed, calls with its certificates
	// fail on open connections, too.
	CAFile string
	// Names lists the client certificates that may call. A name is compared with the common name
	// of the subject, the DNS names, URIs, email addresses and IP addresses of the certificate.
	// If Names is empty, any client certificate signed by a CA in CAFile is accepted. A name with "://" or
	// "urn:" matches URIs only, an IP address matches IP addresses only, and a name with "@" does
	// not match DNS names.
	Names []string
	// TokenFile holds bearer tokens of 16 bytes or more, one per line. Create them with a random
	// generator. Empty lines and lines that start with "#" are ignored. To replace a token, keep the
	// old and the new one in the file for a while: an API server needs a minute to see its new
	// token.
	TokenFile string
	// BasicFile holds user names and passwords, as user:password on each line. A user may have
	// several passwords. Empty lines and comments are ignored as in TokenFile.
	BasicFile string
	// ReloadInterval is how often the files are read again: every 10 s by default. Negative means
	// never.
	ReloadInterval time.Duration
}
