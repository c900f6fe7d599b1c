// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestUnusualPlaces requires that a secret is replaced in places that a search for usual names and forms misses. In
// each object, SECRET is the place of the secret.
func TestUnusualPlaces(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	const pem = "-----BEGIN CERTIFICATE-----\nMIIB9f86DQx8yZ1Kq2\n-----END CERTIFICATE-----\n"
	for _, in := range []struct{ reason, secret, object string }{
		{"an escaped name", "hunter2", `{"spec":{"\u0070assword":"SECRET"}}`},
		{"a duplicate name", "hunter2", `{"spec":{"password":"SECRET","password":"x"}}`},
		{"a kind that is there twice", "aHVudGVyMg==", `{"kind":"Secret","data":{"a":"SECRET"},"kind":"Pod"}`},
		{"a number of a name", "hunter2", `{"spec":{"password2":"SECRET"}}`},
		{"a name with a suffix", "hunter2", `{"spec":{"passwordBase64":"SECRET"}}`},
		{"a short name", "hunter2", `{"spec":{"dbpass":"SECRET"}}`},
		{"the value of a credential", "hunter2", `{"spec":{"password":{"value":"SECRET"}}}`},
		{"an element with a key", "hunter2", `{"spec":{"settings":[{"key":"db-password","value":"SECRET"}]}}`},
		{"a map of passwords", "hunter2", `{"spec":{"passwords":{"ada":"SECRET"}}}`},
		{"credentials of a registry", encode([]byte("ada:hunter2")), `{"metadata":{"annotations":{"a":"{\"auths\":{\"r.example\":{\"auth\":\"SECRET\"}}}"}}}`},
		{"credentials of a registry in base64", encode([]byte(`{"auths":{"r.example":{"auth":"YWRhOmh1bnRlcjI="}}}`)), `{"spec":{"pull":"SECRET"}}`},
		{"base64 in base64", encode([]byte(encode([]byte("password=hunter2")))), `{"spec":{"blob":"SECRET"}}`},
		{"base64 of text that is not ASCII", encode([]byte("password=hünter2 für alle")), `{"spec":{"blob":"SECRET"}}`},
		{"base64 without padding", strings.TrimRight(encode([]byte("password=hunter2??>>~~")), "="), `{"spec":{"blob":"SECRET"}}`},
		{"base64 of a certificate and a password", encode([]byte(pem + "password: hunter2\n")), `{"spec":{"blob":"SECRET"}}`},
		{"curl in a script", "hunter2", `{"spec":{"command":["sh","-c","curl -u ada:SECRET https://shop.example"]}}`},
		{"curl with an equals sign", "hunter2", `{"spec":{"args":["--user=ada:SECRET"]}}`},
		{"mysql in a script", "hunter2", `{"spec":{"command":["sh","-c","mysql -uroot -pSECRET shop"]}}`},
		{"a flag on two lines", "hunter2", `{"spec":{"command":["sh","-c","run --password \\\n  SECRET"]}}`},
		{"a tab after a flag", "hunter2", `{"spec":{"command":["sh","-c","run --password\tSECRET"]}}`},
		{"an unusual authorization", "hunter2hunter2", `{"spec":{"args":["-H","Authorization: GenieKey SECRET"]}}`},
		{"a cookie", "hunter2hunter2", `{"spec":{"args":["-H","Cookie: theme=dark; sid=SECRET"]}}`},
		{"a password with brackets in a URL", "hun(ter,2)", `{"spec":{"url":"https://ada:SECRET@git.example/shop"}}`},
		{"a data source name with a sign in the password", "hunter@two", `{"spec":{"source":"shop:SECRET@tcp(db:3306)/shop"}}`},
		{"a connection string", "hunter2", `{"spec":{"source":"Server=db;User Id=sa;Password=SECRET;Encrypt=yes"}}`},
		{"the signature of a URL", "hunter2hunter2", `{"spec":{"url":"https://a.blob.example/c?sv=2022&sig=SECRET&se=2030"}}`},
		{"a block of YAML", "hunter two", `{"spec":{"values":"db:\n  password: |\n    SECRET\n  port: 1\n"}}`},
		{"the second line of a block", "hunter two", `{"spec":{"values":"db:\n  password: >-\n    first\n\n    SECRET\n"}}`},
		{"a list in YAML", "hunter2", `{"spec":{"values":"tokens:\n- first\n- SECRET\nx: y\n"}}`},
		{"a deeper list in YAML", "hunter2", `{"spec":{"values":"a:\n  tokens:\n    - \"SECRET\"\n"}}`},
		{"a Secret as YAML with quotes", "hunter2", `{"spec":{"manifest":"kind: \"Secret\"\nstringData:\n  a: SECRET\n"}}`},
		{"a block of a Secret as YAML", "hunter two", `{"spec":{"manifest":"kind: Secret\nstringData:\n  a: |\n    x\n    SECRET\n"}}`},
		{"a header with values", "hunter2", `{"spec":{"headers":{"Authorization":{"values":["SECRET"]}}}}`},
		{"the data of a secret", "hunter2", `{"spec":{"secret":{"data":"SECRET"}}}`},
		{"a string of a secret", "hunter2", `{"spec":{"secretString":"SECRET"}}`},
		{"an assignment with two signs", "hunter2", `{"spec":{"text":"password := SECRET"}}`},
		{"an assignment with an arrow", "hunter2", `{"spec":{"text":"password => SECRET"}}`},
		{"the URL of a chat", "T0123/B0456/abcdefgh1234", `{"spec":{"url":"https://hooks.slack.com/services/SECRET"}}`},
		{"XML", "hunter2", `{"spec":{"config":"<server><password>SECRET</password></server>"}}`},
		{"an attribute in XML", "hunter2", `{"spec":{"config":"<server password='SECRET'/>"}}`},
		{"an attribute in XML with its name in another", "hunter2", `{"spec":{"config":"<add key=\"DbPassword\" value=\"SECRET\"/>"}}`},
		{"a .netrc file", "hunter2", `{"spec":{"file":"machine h.example\nlogin ada\npassword SECRET\n"}}`},
		{"a .netrc file in one line", "hunter2", `{"spec":{"file":"machine h.example login ada password SECRET"}}`},
		{"a file of Redis", "letmein", `{"spec":{"file":"port 6379\nrequirepass SECRET\n"}}`},
		{"a statement of SQL", "letmein", `{"spec":{"init":"CREATE USER ada IDENTIFIED BY 'SECRET'"}}`},
		{"a password of a role in SQL", "letmein", `{"spec":{"init":"ALTER ROLE ada WITH PASSWORD 'SECRET'"}}`},
		{"redis-cli", "hunter2", `{"spec":{"command":["redis-cli","-a","SECRET"]}}`},
		{"redis-cli in a script", "hunter2", `{"spec":{"command":["sh","-c","redis-cli -a SECRET ping"]}}`},
		{"sqlcmd in a script", "hunter2", `{"spec":{"command":["sh","-c","sqlcmd -S db -U sa -P 'SECRET'"]}}`},
		{"ldapsearch", "hunter2", `{"spec":{"args":["-x","-w","SECRET"]}}`},
		{"curl without a space", "hunter2", `{"spec":{"args":["-uada:SECRET"]}}`},
		{"smbclient", "hunter2", `{"spec":{"args":["-U","ada%SECRET"]}}`},
		{"kubectl create secret", "letmein", `{"spec":{"command":["sh","-c","kubectl create secret generic x --from-literal=k=SECRET"]}}`},
		{"kubectl create secret with a space", "letmein", `{"spec":{"args":["--from-literal","k=SECRET"]}}`},
		{"standard input", "letmein", `{"spec":{"command":["sh","-c","echo SECRET | docker login -u ada --password-stdin"]}}`},
		{"standard input with a format", "letmein", `{"spec":{"command":["sh","-c","printf '%s' \"SECRET\" | docker login -u ada --password-stdin"]}}`},
		{"the name of a member", "ghp_abcdefghijklmnopqrstuvwxyz0123", `{"metadata":{"annotations":{"SECRET":"x"}}}`},
	} {
		t.Run(in.reason, func(t *testing.T) {
			request := reviewOf(strings.ReplaceAll(in.object, "SECRET", in.secret))
			if got, _ := redacted(t, redactor(t), request, ""); strings.Contains(got, in.secret) {
				t.Errorf("it stays: %s", got[len(request)-len(in.object)-20:])
			}
		})
	}
}

// TestExtraWithNull requires that a null among the extra of a user does not hide the others. Go writes an empty value so.
func TestExtraWithNull(t *testing.T) {
	request := strings.Replace(reviewOf("{}"), `"username":"ada"`, `"username":"ada","extra":{"a":null,"b":["hunter2"]}`, 1)
	if got, _ := redacted(t, redactor(t), request, ""); strings.Contains(got, "hunter2") {
		t.Errorf("it stays: %s", got)
	}
}

// TestUnusualPatches requires that secrets in all members of a patch are replaced.
func TestUnusualPatches(t *testing.T) {
	for reason, patch := range map[string]string{
		"a duplicate value": `[{"op":"add","path":"/spec/env/X","value":"geheim","value":"x"}]`,
		"a further member":  `[{"op":"remove","path":"/a","comment":"password=geheim"}]`,
		"no operation":      `["password=geheim"]`,
	} {
		_, got := redacted(t, redactor(t), reviewOf(`{"spec":{}}`), answerTemplate{patch: patch}.with("", "", ""))
		if strings.Contains(got, "geheim") {
			t.Errorf("%s: it stays: %s", reason, got)
		}
	}
}

// TestCutAnswer requires that an answer which is cut does not end in a part of a secret.
func TestCutAnswer(t *testing.T) {
	const secret = "swordfish-and-chips-7"
	for keep := 8; keep < len(secret); keep += 4 {
		text := strings.Repeat("x ", maxText/2)[keep:] + secret + " was refused"
		_, got := redacted(t, redactor(t), reviewOf(`{"spec":{"token":"`+secret+`"}}`), text)
		if strings.Contains(got, secret[:8]) {
			t.Errorf("it stays: %s", got[len(got)-60:])
		}
	}
}

// TestValuesWithOtherMeanings requires that values which have another meaning elsewhere stay there, because the object
// would become invalid, or the decisions of hooks would change.
func TestValuesWithOtherMeanings(t *testing.T) {
	const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for reason, in := range map[string]struct{ object, want string }{
		"an algorithm":     {`{"spec":{"containers":[{"image":"r.example/web@sha256:` + digest + `","env":[{"name":"ALG","value":"sha256"}]}]}}`, `"r.example/web@sha256:` + digest + `"`},
		"a part of a name": {`{"metadata":{"name":"team42-web"},"spec":{"env":[{"name":"TEAM","value":"team42"}]}}`, `"name":"team42-web"`},
		"a constant":       {`{"spec":{"capabilities":{"add":["NET_ADMIN"]},"env":[{"name":"CAPS","value":"NET_ADMIN"}]}}`, `"add":["NET_ADMIN"]`},
		"a folder":         {`{"spec":{"command":["sh","-c","mkdir -p /var/lib/shop && x"],"mountPath":"/var/lib/shop"}}`, `"mountPath":"/var/lib/shop"`},
		"a time":           {`{"spec":{"command":["sh","-c","date -u +%Y-%m"],"format":"+%Y-%m"}}`, `"format":"+%Y-%m"`},
		"a Secret":         {`{"spec":{"message":"secret registry2 was not found","pull":"registry2"}}`, `"pull":"registry2"`},
		"a short flag":     {`{"spec":{"args":["-a","eth0/24","-k","-w","web-2"],"device":"eth0/24","name":"web-2"}}`, `"device":"eth0/24"`},
		"a sentence":       {`{"spec":{"message":"the password must have 8 characters","next":"must"}}`, `"next":"must"`},
		"a folder of two":  {`{"spec":{"command":["mkdir","-p","/var/lib/shop"],"mountPath":"/var/lib/shop"}}`, `"mountPath":"/var/lib/shop"`},
		"a certificate": {`{"spec":{"ca":"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----\n"}}`,
			"MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"},
		"a reference": {`{"spec":{"values":"password:\n  secretKeyRef:\n    name: db\n    key: pin\n"}}`, `name: db\n    key: pin`},
	} {
		if got, _ := redacted(t, redactor(t), reviewOf(in.object), ""); !strings.Contains(got, in.want) {
			t.Errorf("%s: no %s in %s", reason, in.want, got)
		}
	}
}
