// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkJob(c *checker, o *batchv1.Job) {
	spec := &o.Spec
	checkJobSpec(c, specPath, spec)
	if spec.ManualSelector != nil && *spec.ManualSelector {
		checkManualSelector(c, spec)
	}
	if isIndexed(spec) && spec.Completions != nil && *spec.Completions > 0 && o.Name != "" {
		last := o.Name + "-" + strconv.Itoa(int(*spec.Completions)-1)
		if bad := badLabel(last); bad != nil {
			c.invalid(metadataPath.Child("name"), o.Name, "will not able to create pod with invalid DNS label: "+last)
		}
	}
}

func isIndexed(spec *batchv1.JobSpec) bool {
	return spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
}

// checkManualSelector checks a selector that the user has written. Normally the API server generates the selector of a
// Job.
func checkManualSelector(c *checker, spec *batchv1.JobSpec) {
	if spec.Selector == nil {
		c.required(specPath.Child("selector"), "")
		return
	}
	c.selector(specPath.Child("selector"), spec.Selector)
	if !matches(spec.Selector, spec.Template.Labels) {
		c.invalid(templatePath.Child("metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`")
	}
}

func checkJobSpec(c *checker, at *field.Path, spec *batchv1.JobSpec) {
	notNegativeIf(c, at, "parallelism", spec.Parallelism)
	notNegativeIf(c, at, "completions", spec.Completions)
	notNegativeIf(c, at, "activeDeadlineSeconds", spec.ActiveDeadlineSeconds)
	notNegativeIf(c, at, "backoffLimit", spec.BackoffLimit)
	notNegativeIf(c, at, "ttlSecondsAfterFinished", spec.TTLSecondsAfterFinished)
	notNegativeIf(c, at, "backoffLimitPerIndex", spec.BackoffLimitPerIndex)
	notNegativeIf(c, at, "maxFailedIndexes", spec.MaxFailedIndexes)
	enumIf(c, at, "completionMode", spec.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	enumIf(c, at, "podReplacementPolicy", spec.PodReplacementPolicy, batchv1.TerminatingOrFailed, batchv1.Failed)
	if isIndexed(spec) && spec.Completions == nil {
		c.required(at.Child("completions"), "when completion mode is Indexed")
	}
	if !isIndexed(spec) && spec.BackoffLimitPerIndex != nil {
		c.invalid(at.Child("backoffLimitPerIndex"), *spec.BackoffLimitPerIndex, "requires indexed completion mode")
	}
	if !isIndexed(spec) && spec.MaxFailedIndexes != nil {
		c.invalid(at.Child("maxFailedIndexes"), *spec.MaxFailedIndexes, "requires indexed completion mode")
	}
	at = at.Child("template")
	c.template(at, &spec.Template, false)
	switch policy := spec.Template.Spec.RestartPolicy; {
	case policy == corev1.RestartPolicyAlways || policy == "":
		c.required(at.Child("spec", "restartPolicy"), `valid values: "OnFailure", "Never"`)
	case spec.PodFailurePolicy != nil && policy == corev1.RestartPolicyOnFailure:
		c.invalid(at.Child("spec", "restartPolicy"), policy, `only "Never" is supported when podFailurePolicy is specified`)
	}
}

func checkCronJob(c *checker, o *batchv1.CronJob) {
	spec := &o.Spec
	if spec.Schedule == "" {
		c.required(specPath.Child("schedule"), "")
	}
	notNegativeIf(c, specPath, "startingDeadlineSeconds", spec.StartingDeadlineSeconds)
	notNegativeIf(c, specPath, "successfulJobsHistoryLimit", spec.SuccessfulJobsHistoryLimit)
	notNegativeIf(c, specPath, "failedJobsHistoryLimit", spec.FailedJobsHistoryLimit)
	enum(c, specPath, "concurrencyPolicy", spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	at := specPath.Child("jobTemplate", "spec")
	checkJobSpec(c, at, &spec.JobTemplate.Spec)
	if spec.JobTemplate.Spec.Selector != nil {
		c.invalid(at.Child("selector"), "", "`selector` will be auto-generated")
	}
	if manual := spec.JobTemplate.Spec.ManualSelector; manual != nil && *manual {
		c.add(field.NotSupported(at.Child("manualSelector"), *manual, []string{"nil", "false"}))
	}
}

// checkNewCronJob checks rules that apply only to new CronJobs.
func checkNewCronJob(c *checker, o *batchv1.CronJob) {
	const mostName = 52 // the controller appends eleven characters to the name of each Job
	if len(o.Name) > mostName {
		c.invalid(metadataPath.Child("name"), o.Name, "must be no more than 52 characters")
	}
	if strings.Contains(o.Spec.Schedule, "TZ") {
		c.invalid(specPath.Child("schedule"), o.Spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	}
}
