// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// userOf returns the user of a request. Without a user, it is "admin" in the group system:masters.
func userOf(u authenticationv1.UserInfo) user.Info {
	if u.Username == "" && u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 {
		return &user.DefaultInfo{Name: "admin", Groups: []string{masters, user.AllAuthenticated}}
	}
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string][]string{}
		}
		info.Extra[key] = values
	}
	return info
}

// MastersOnly is an authorizer that allows everything to members of system:masters, and has no opinion about other
// users. It is the default authorizer of an engine.
var MastersOnly = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a.GetUser().GetGroups(), masters) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
})

const masters = "system:masters"
