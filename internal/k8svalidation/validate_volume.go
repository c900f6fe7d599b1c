// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/k8svalidation/internal/defaults"
)

func (p *podCheck) checkVolumes() {
	volumes := p.spec.Volumes
	if len(volumes) == 0 {
		return
	}
	at := p.at.Child("volumes")
	p.volumes = make(map[string]*corev1.Volume, len(volumes))
	for i := range volumes {
		v := &volumes[i]
		if v.Name == "" {
			p.required(at.Index(i).Child("name"), "")
		} else if bad := badLabel(v.Name); bad != nil {
			p.invalid(at.Index(i).Child("name"), v.Name, bad...)
		}
		if p.volumes[v.Name] != nil {
			p.duplicate(at.Index(i).Child("name"), v.Name)
		} else {
			p.volumes[v.Name] = v
		}
		(&volumeCheck{p, at.Index(i), v}).check()
	}
}

// A volumeCheck checks one volume of a Pod.
type volumeCheck struct {
	*podCheck
	path   *field.Path
	volume *corev1.Volume
}

// check checks the source of the volume. Without a source it becomes an emptyDir.
func (p *volumeCheck) check() {
	at, v := p.path, p.volume
	if defaults.VolumeSources(&v.VolumeSource) > 1 {
		for _, name := range sourceNames(&v.VolumeSource)[1:] {
			p.forbidden(at.Child(name), "may not specify more than 1 volume type")
		}
		return
	}
	switch {
	case v.EmptyDir != nil:
		if limit := v.EmptyDir.SizeLimit; limit != nil && limit.Sign() < 0 {
			p.forbidden(at.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity")
		}
	case v.ConfigMap != nil:
		p.present(at, "configMap", "name", v.ConfigMap.Name)
		p.mode(at.Child("configMap"), "defaultMode", v.ConfigMap.DefaultMode)
		p.items(at.Child("configMap", "items"), v.ConfigMap.Items)
	case v.Secret != nil:
		p.present(at, "secret", "secretName", v.Secret.SecretName)
		p.mode(at.Child("secret"), "defaultMode", v.Secret.DefaultMode)
		p.items(at.Child("secret", "items"), v.Secret.Items)
	case v.HostPath != nil:
		p.hostPath(at.Child("hostPath"), v.HostPath)
	case v.PersistentVolumeClaim != nil:
		p.claimRef(at, v.PersistentVolumeClaim.ClaimName)
	case v.DownwardAPI != nil:
		p.mode(at.Child("downwardAPI"), "defaultMode", v.DownwardAPI.DefaultMode)
		for i := range v.DownwardAPI.Items {
			p.file(at.Child("downwardAPI"), &v.DownwardAPI.Items[i])
		}
	case v.Projected != nil:
		p.projected(at.Child("projected"), v.Projected)
	case v.Ephemeral != nil:
		p.ephemeral(at, v)
	case v.CSI != nil:
		p.csi(at.Child("csi"), v.CSI)
	case v.NFS != nil:
		p.present(at, "nfs", "server", v.NFS.Server)
		p.present(at, "nfs", "path", v.NFS.Path)
		if v.NFS.Path != "" && !strings.HasPrefix(v.NFS.Path, "/") {
			p.invalid(at.Child("nfs", "path"), v.NFS.Path, "must be an absolute path")
		}
	}
}

// sourceNames lists the types that are set in a volume, emptyDir first.
func sourceNames(source *corev1.VolumeSource) []string {
	var names []string
	v := reflect.ValueOf(source).Elem()
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	if i := slices.Index(names, "emptyDir"); i > 0 {
		names[0], names[i] = names[i], names[0]
	}
	return names
}

// present adds an error if text, the value of a field at parent.child, is empty.
func (c *checker) present(at *field.Path, parent, child, text string) {
	if text == "" {
		c.required(at.Child(parent, child), "")
	}
}

// mode checks file permission bits.
func (c *checker) mode(at *field.Path, child string, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		c.invalid(at.Child(child), *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func (p *volumeCheck) items(at *field.Path, items []corev1.KeyToPath) {
	for i := range items {
		item := &items[i]
		if item.Key == "" {
			p.required(at.Index(i).Child("key"), "")
		}
		p.filePath(at.Index(i), item.Path)
		p.mode(at.Index(i), "mode", item.Mode)
	}
}

// filePath checks the path of a file in a volume.
func (c *checker) filePath(at *field.Path, path string) {
	if path == "" {
		c.required(at.Child("path"), "")
		return
	}
	c.descending(at, "path", path)
	if strings.HasPrefix(path, "..") && !stepsBack(path) {
		c.invalid(at.Child("path"), path, "must not start with '..'")
	}
}

func (p *volumeCheck) hostPath(at *field.Path, h *corev1.HostPathVolumeSource) {
	if h.Path == "" {
		p.required(at.Child("path"), "")
		return
	}
	if stepsBack(h.Path) {
		p.invalid(at.Child("path"), h.Path, "must not contain '..'")
	}
	enumIf(p.checker, at, "type", h.Type, corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
		corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)
}

// claimRef checks the name of a PersistentVolumeClaim. It rejects a claim that belongs to an ephemeral volume of the
// same Pod.
func (p *volumeCheck) claimRef(at *field.Path, name string) {
	p.present(at, "persistentVolumeClaim", "claimName", name)
	if p.podName == "" {
		return
	}
	for i := range p.spec.Volumes {
		if v := &p.spec.Volumes[i]; v.Ephemeral != nil && name == p.podName+"-"+v.Name {
			p.invalid(at.Child("persistentVolumeClaim", "claimName"), name, "must not reference a PVC that gets created for an ephemeral volume")
		}
	}
}

func (p *volumeCheck) file(at *field.Path, f *corev1.DownwardAPIVolumeFile) {
	p.filePath(at, f.Path)
	p.mode(at, "mode", f.Mode)
	switch {
	case f.FieldRef != nil && f.ResourceFieldRef != nil:
		p.invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
	case f.FieldRef != nil:
		p.fieldRef(at.Child("fieldRef"), f.FieldRef, fileFields)
	case f.ResourceFieldRef == nil:
		p.required(at, "one of fieldRef and resourceFieldRef is required")
	case f.ResourceFieldRef.ContainerName == "":
		p.required(at.Child("resourceFieldRef", "containerName"), "")
	default:
		p.resourceRef(at.Child("resourceFieldRef"), f.ResourceFieldRef)
	}
}

// projected checks that no two sources write the same path.
func (p *volumeCheck) projected(at *field.Path, v *corev1.ProjectedVolumeSource) {
	p.mode(at, "defaultMode", v.DefaultMode)
	var paths seen[string]
	once := func(path string) {
		if path != "" && !paths.add(path) {
			p.invalid(at, path, "conflicting duplicate paths")
		}
	}
	for i := range v.Sources {
		at := at.Child("sources").Index(i)
		source := &v.Sources[i]
		if s := source.Secret; s != nil {
			p.present(at, "secret", "name", s.Name)
			p.items(at.Child("secret", "items"), s.Items)
			eachPath(s.Items, once)
		}
		if s := source.ConfigMap; s != nil {
			p.present(at, "configMap", "name", s.Name)
			p.items(at.Child("configMap", "items"), s.Items)
			eachPath(s.Items, once)
		}
		if s := source.DownwardAPI; s != nil {
			for j := range s.Items {
				p.file(at.Child("downwardAPI"), &s.Items[j])
				once(s.Items[j].Path)
			}
		}
		if s := source.ServiceAccountToken; s != nil {
			p.token(at.Child("serviceAccountToken"), s)
		}
		set := []bool{source.Secret != nil, source.ConfigMap != nil, source.DownwardAPI != nil, source.ServiceAccountToken != nil}
		if first := slices.Index(set, true); first >= 0 && slices.Contains(set[first+1:], true) {
			p.forbidden(at, "may not specify more than 1 volume type per source")
		}
	}
}

func eachPath(items []corev1.KeyToPath, do func(string)) {
	for i := range items {
		do(items[i].Path)
	}
}

func (p *volumeCheck) token(at *field.Path, t *corev1.ServiceAccountTokenProjection) {
	if s := t.ExpirationSeconds; s != nil && (*s < 10*60 || *s > 1<<32) {
		p.invalid(at.Child("expirationSeconds"), *s, "may not specify a duration less than 10 minutes or larger than 2^32 seconds")
	}
	p.filePath(at, t.Path)
}

func (p *volumeCheck) csi(at *field.Path, csi *corev1.CSIVolumeSource) {
	const most = 63
	switch driver := csi.Driver; {
	case driver == "":
		p.required(at.Child("driver"), "")
	case len(driver) > most:
		p.add(field.TooLong(at.Child("driver"), driver, most))
	default:
		p.invalid(at.Child("driver"), driver, badSubdomain(strings.ToLower(driver))...)
	}
	if ref := csi.NodePublishSecretRef; ref != nil {
		p.invalid(at.Child("nodePublishSecretRef", "name"), ref.Name, badSubdomain(ref.Name)...)
	}
}

func (p *volumeCheck) ephemeral(at *field.Path, v *corev1.Volume) {
	t := v.Ephemeral.VolumeClaimTemplate
	if t == nil {
		p.required(at.Child("ephemeral", "volumeClaimTemplate"), "")
		return
	}
	in := at.Child("ephemeral", "volumeClaimTemplate")
	p.labelsAndAnnotations(in.Child("metadata"), &t.ObjectMeta)
	checkClaimSpec(p.checker, in.Child("spec"), &t.Spec)
	if p.podName != "" && v.Name != "" {
		p.invalid(at.Child("name"), v.Name, badSubdomain(p.podName+"-"+v.Name)...)
	}
}
