// SPDX-License-Identifier: Apache-2.0

// Package generate makes the inputs of the harness: valid objects of a kind with the shapes that webhooks
// break on, fields that no type knows, and what a stranger could add to an object.
//
// A [Schema] tells what a document of a kind may hold, from a Go type ([ForType]) or from the definition
// of a custom resource ([ForCRD]). A [Generator] makes objects of it:
//
//		g := &generate.Generator{Schema: generate.ForType(reflect.TypeFor[corev1.Pod]()), Namespace: "default"}
//		pod, traits := g.Object(r, sample)
//
//	  - [Generator.Object] adds random traits to a sample, or to the least valid object. It changes
//	    nothing that the sample has. The names of the traits tell what the object shows, and
//	    [Generator.Without] takes them away.
//	  - [Schema.Unknown] sows fields that no type knows.
//	  - [Generator.Places] are the lists and maps that a stranger could add to, and [Generator.Addition]
//	    is what.
//	  - [Schema.Keys] tells how the elements of a list are told apart.
//
// Pods, the kinds with a pod template, and a few more of the core API are known by heart: what is made
// of them the API server accepts, if it does not ask for a service account that is not there. Other
// built-in kinds need a sample; only their metadata gets traits. Objects of other Go types are filled by
// their tags, and custom resources by their schema, checked with the code of the API server.
//
// All is a function of the source of random numbers, math/rand/v2, and of the arguments.
package generate
