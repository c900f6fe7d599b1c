// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/admitkit/admitkit/internal/jsonraw"

// The members of a review, in the order in which the API server writes them.
const (
	inReviewKind = iota
	inReviewAPIVersion
	inReviewRequest
)

var reviewNames = jsonraw.NewNames([]string{
	inReviewKind:       "kind",
	inReviewAPIVersion: "apiVersion",
	inReviewRequest:    "request",
}...)

const (
	inRequestUID = iota
	inRequestKind
	inRequestResource
	inRequestSubResource
	inRequestRequestKind
	inRequestRequestResource
	inRequestRequestSubResource
	inRequestName
	inRequestNamespace
	inRequestOperation
	inRequestUserInfo
	inRequestObject
	inRequestOldObject
	inRequestDryRun
	inRequestOptions
)

var requestNames = jsonraw.NewNames([]string{
	inRequestUID:                "uid",
	inRequestKind:               "kind",
	inRequestResource:           "resource",
	inRequestSubResource:        "subResource",
	inRequestRequestKind:        "requestKind",
	inRequestRequestResource:    "requestResource",
	inRequestRequestSubResource: "requestSubResource",
	inRequestName:               "name",
	inRequestNamespace:          "namespace",
	inRequestOperation:          "operation",
	inRequestUserInfo:           "userInfo",
	inRequestObject:             "object",
	inRequestOldObject:          "oldObject",
	inRequestDryRun:             "dryRun",
	inRequestOptions:            "options",
}...)

const (
	inUserUsername = iota
	inUserUID
	inUserGroups
	inUserExtra
)

var userNames = jsonraw.NewNames([]string{
	inUserUsername: "username",
	inUserUID:      "uid",
	inUserGroups:   "groups",
	inUserExtra:    "extra",
}...)

var (
	kindNames     = jsonraw.NewNames("group", "version", "kind")
	resourceNames = jsonraw.NewNames("group", "version", "resource")
)
