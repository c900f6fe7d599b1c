// SPDX-License-Identifier: Apache-2.0

// Package generate generates the inputs of the harness: valid objects of a kind with the properties on which webhooks
// fail, and values that another party could add to an object.
//
// A [Schema] describes the documents of a kind, from a Go type ([ForType]) or from the definition of a custom resource
// ([ForCRD]). A [Generator] generates its objects:
//
//		g := &generate.Generator{Schema: generate.ForType(reflect.TypeFor[corev1.Pod]()), Namespace: "default"}
//		pod, traits := g.Object(r, sample)
//
//	  - [Generator.Object] adds random traits to a sample, or to a minimal valid object. A trait is
//	    a property of an object, and its name says which. Object changes nothing that the sample has.
//	    [Generator.Without] disables traits.
//	  - [Generator.Places] returns the lists and maps that another party could add to, and [Generator.Addition]
//	    returns a value for one of them.
//	  - [Schema.Keys] returns how the elements of a list are identified.
//
// The package has rules for Pods, the kinds with a Pod template, and some other core kinds. The API server accepts
// their generated objects, unless it requires a ServiceAccount that does not exist. Other built-in kinds need a sample,
// and only their metadata varies. Custom resources are filled by their schemas and validated with the API server's
// code.
//
// Every result depends only on the source of random numbers (math/rand/v2) and the arguments.
package generate
