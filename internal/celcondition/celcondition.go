// SPDX-License-Identifier: Apache-2.0

// Package celcondition compiles the expressions of matchConditions as the API server does when a configuration is created.
package celcondition

import (
	"sync"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Problem returns why the API server rejects an expression, or an empty string if it accepts the expression.
func Problem(expression string) string {
	result := compiler().CompileCELExpression(&matchconditions.MatchCondition{Expression: expression},
		plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	if result.Error == nil {
		return ""
	}
	return result.Error.Detail
}

var compiler = sync.OnceValue(func() plugincel.Compiler {
	return plugincel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})
