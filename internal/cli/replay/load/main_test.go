// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"

	"github.com/admitkit/admitkit/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
