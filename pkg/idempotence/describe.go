// SPDX-License-Identifier: Apache-2.0

package idempotence

// by looks up what is said about a law that is broken in a way, or about the law.
func by[T any](table map[string]T, law Law, mode FailureMode) T {
	for _, key := range []string{string(law) + " " + string(mode), string(law), "any " + string(mode)} {
		if value, ok := table[key]; ok {
			return value
		}
	}
	return table[""]
}

// requestsOf says what each request of a finding is about.
func requestsOf(law Law, mode FailureMode) []string { return by(requests, law, mode) }

var requests = map[string][]string{
	"L1":                          {"the object", "what came of it"},
	"L2":                          {"the object", "what came of it"},
	"L3":                          {"the object", "the same object again"},
	"L3 reads metadata.namespace": {"the object", "the same without metadata.namespace"},
	"L4a":                         {"the object", "what came of it, edited by another party", "what came of that"},
	"L4b":                         {"the object", "what came of it, with the addition", "the object with the addition from the start", "what came of that"},
	"L5":                          {"the object with the part", "what came of it"},
	"L5 incomplete":               {"the object", "the object with the part"},
	"L6":                          {"the object", "the manifest applied again"},
	"L6 immutable":                {"an update of an annotation"},
	"L6 blocks deletion":          {"the removal of the last finalizer"},
	"L6 server error":             {"the update"},
	"L7":                          {"the object", "the same in, or after, a dry run"},
	"L7 side effect":              {"the object, in a dry run"},
	"L8":                          {"the object", "the same in the other way"},
	"L8 envelope":                 {"the object"},
	"L8 envelope again":           {"the object", "what came of it"},
	"L9":                          {"the object with fields of a newer API"},
	"L10":                         {"the object", "what came of it"},
	"L11":                         {"this webhook first", "then the other", "the other webhook first", "then this one"},
	"L12":                         {"this webhook", "then the other", "this webhook again", "then the other again"},
}

// sidesOf says which two objects differ.
func sidesOf(law Law, mode FailureMode) (from, to string) {
	s := by(sides, law, mode)
	return s[0], s[1]
}

var sides = map[string][2]string{
	"":                            {"one call", "the next call"},
	"L3":                          {"the first answer", "the second answer"},
	"L3 reads metadata.namespace": {"with metadata.namespace", "without it"},
	"L4b":                         {"added between two calls", "added before the first call"},
	"L5 incomplete":               {"the object without the part", "the object with the part"},
	"any removes":                 {"the object as it was sent", "what the webhook made of it"},
	"L5 removes":                  {"the object as it was sent", "what the webhook made of it"},
	"any overwrites":              {"the object as it was sent", "what the webhook made of it"},
	"L5 overwrites":               {"the object as it was sent", "what the webhook made of it"},
	"any removes from sample":     {"the object as it was sent", "what the webhook made of it"},
	"L6":                          {"as it was stored", "with the manifest applied again"},
	"L7":                          {"without a dry run", "in, or after, a dry run"},
	"L8":                          {"the usual review", "the other review"},
	"L11":                         {"this webhook first", "the other webhook first"},
	"L12":                         {"one turn", "the next turn"},
}

// causeOf says what is likely behind a finding.
func causeOf(law Law, mode FailureMode) string { return by(causes, law, mode) }

var causes = map[string]string{
	"L1 grows":                    "It adds a part without looking whether the part is there.",
	"L1 changes":                  "It computes a value from one that it has changed itself: it appends, prefixes, adds up, counts or hashes its own parts.",
	"L1 invalid":                  "It writes what does not go with the rest of the object: an element of a name, path or port that is taken, or a value that another field rules out.",
	"L1 invalid on Windows":       "It sets what is for Linux only.",
	"L4a invalid on Windows":      "It sets what is for Linux only.",
	"L5 invalid on Windows":       "It sets what is for Linux only.",
	"L1 no-op patch":              "It sends its patch without looking whether anything differs.",
	"L2 server error":             "It takes for granted what a valid object may lack: labels, annotations, a name, a security context.",
	"L2 hangs":                    "It waits for something: a lock, another server, or the API server, which waits for the webhook.",
	"L2 denied":                   "A check that is meant for the user's objects meets what the webhook put there itself.",
	"L3":                          "The answer depends on more than the request: a clock, random numbers, a counter, memory of other objects, or the order in which a map is iterated.",
	"L3 reads metadata.namespace": "It reads the namespace from the object.",
	"L3 decides differently":      "The decision depends on more than the request: what the instance has seen, or another system.",
	"L4a":                         "It remembers that it is done (an annotation, a marker, the first of its parts) and does not look at the parts themselves.",
	"L4a accumulates":             "It does not recognise its own part once another party has edited it, and adds it again.",
	"L4a denied later":            "It checks what it noted in an earlier call, which others may have made untrue.",
	"L4a changes":                 "It takes its own earlier output, edited since, for the user's input.",
	"L4a grows":                   "It adds a part without looking whether the part is there.",
	"L4a server error":            "It takes for granted that its parts are as it left them: an entry, a field, an index that somebody has removed.",
	"L4a invalid":                 "It adds a part although somebody has put one of that name, path or port there since.",
	"L4a denied":                  "A check that is meant for the user's objects meets what the webhook put there itself.",
	"L4b decides differently":     "A check sees what was there at the first call, and not what came later, or the other way round.",
	"L4b":                         "It stops when it finds one of its parts, and what was added later is left out.",
	"L5 server error":             "It takes for granted that a part that is there is one of its own, and complete.",
	"L5 incomplete":               "It takes one part for the sign that all are there.",
	"L5 invalid":                  "It compares names only, or paths only, and adds what collides with what is there.",
	"L5 removes":                  "It replaces a whole list or map, or merges elements that only look alike.",
	"L5 overwrites":               "It enforces an element or a command line of its own, whoever has set it.",
	"L5 removes from sample":      "It takes out elements of the object, perhaps on purpose.",
	"L5 misuses":                  "It recognises its volume by the name alone.",
	"L5 denied":                   "A check that is meant for the user's objects meets what the webhook put there itself.",
	"L5":                          "It does not recognise a part that it did not make itself, or made in another call.",
	"L6 server error":             "It takes for granted what only a new object has, or an old object that is not there.",
	"L6 denied":                   "A check that is meant for new objects meets what the webhook, or the API server, has put there.",
	"L6 immutable":                "It does the same on UPDATE as on CREATE, where everything may still change.",
	"L6 blocks deletion":          "It treats an object that is being deleted like any other.",
	"L6":                          "What it does on UPDATE differs from what it did on CREATE.",
	"L7 side effect":              "It writes to another system before it looks at request.dryRun.",
	"L7":                          "A dry run takes another way through the code, or leaves something behind.",
	"L8":                          "It answers in a fixed version, or leaves out uid or patchType.",
	"L8 decides differently":      "It decides by the text of the request and not by what it means.",
	"L8 differs":                  "It reads the text of the request and not what it means, or only one version of the review.",
	"L9 rounds":                   "It reads numbers as floats, as encoding/json does where it has no type.",
	"L9 server error":             "Its decoder is strict: it refuses fields that its types do not have.",
	"L9":                          "It decodes the object into its Go types, encodes them again, and sends the difference to what it got.",
	"L10 does not apply":          "The patch is not made for the object that was sent: an unescaped / in a path, a parent that is missing, an index that has shifted.",
	"L10 does not apply again":    "The patch is made for objects that the webhook has not seen yet.",
	"L10 removes":                 "It replaces a whole list or map with its own, or merges elements that only look alike.",
	"L10 overwrites":              "It enforces an element or a command line of its own, whoever has set it.",
	"L10 removes from sample":     "It takes out elements of the object, perhaps on purpose.",
	"L10 no-op patch":             "It sends its patch without looking whether anything differs.",
	"L11":                         "What it does depends on what the other webhook has done, or not done yet.",
	"L12":                         "Both insist on something that only one of them can have.",
}
