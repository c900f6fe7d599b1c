// SPDX-License-Identifier: Apache-2.0

// A module of its own, so that a project can test its webhooks without the modules that admitkit requires.
module github.com/admitkit/admitkit/verifytest

go 1.22
