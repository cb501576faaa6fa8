package main

// auditPolicy records each change with its user and result. Reads are left out, since watches and polls would hide the writes
// that tests check. Only the reads of the test operator's own kinds are recorded: a list at its answer, a watch at its start and
// its end. Bodies are left out: level Metadata has verb, user, userAgent, objectRef and code.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: Metadata
    verbs: [list, watch]
    users: ["system:serviceaccount:foo-system:foo-operator"]
    resources:
      - {group: "", resources: [configmaps]}
      - {group: demo.ctrlmesh.io, resources: [foos]}
  - level: None
`
