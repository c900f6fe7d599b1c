// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A User is the client that makes the requests, as a webhook sees it.
type User struct {
	Name    string // in findings, such as "a node"
	info    authenticationv1.UserInfo
	encoded []byte // info as JSON
}

// admin makes the requests unless Session.User is set.
var admin = newUser("an administrator", "admin", "", nil, "system:masters", "system:authenticated")

// Users are other clients that create objects, one of each kind.
var Users = []*User{
	newUser("a user", "jane.doe@example.com", "1f6b0f0a-5c1d-4a7e-9d0e-3f3c0f9f1a01",
		map[string]authenticationv1.ExtraValue{"example.com/tenant": {"shop"}}, "developers", "system:authenticated"),
	newUser("a node", "system:node:worker-1", "", nil, "system:nodes", "system:authenticated"),
	newUser("a service account", "system:serviceaccount:shop:deployer", "1f6b0f0a-5c1d-4a7e-9d0e-3f3c0f9f1a02",
		map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"deployer-0"}},
		"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"),
	newUser("the ReplicaSet controller", "system:serviceaccount:kube-system:replicaset-controller", "1f6b0f0a-5c1d-4a7e-9d0e-3f3c0f9f1a03", nil,
		"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
	newUser("an anonymous user", "system:anonymous", "", nil, "system:unauthenticated"),
}

func newUser(name, username, uid string, extra map[string]authenticationv1.ExtraValue, groups ...string) *User {
	u := &User{Name: name, info: authenticationv1.UserInfo{Username: username, UID: uid, Groups: groups, Extra: extra}}
	encoded, err := json.Marshal(u.info)
	if err != nil {
		panic(err) // all values are constants of this package
	}
	u.encoded = encoded
	return u
}

// UserNamed returns the user with a name, or nil.
func UserNamed(name string) *User {
	for _, u := range Users {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// orAdmin returns the user, or the administrator if u is nil.
func (u *User) orAdmin() *User {
	if u == nil {
		return admin
	}
	return u
}

// attributes returns the user as a value of the API server's type.
func (u *User) attributes() user.Info {
	out := &user.DefaultInfo{Name: u.info.Username, UID: u.info.UID, Groups: u.info.Groups, Extra: map[string][]string{}}
	for key, values := range u.info.Extra {
		out.Extra[key] = values
	}
	return out
}
