package main

// auditPolicy records who changed what and how that ended, once a request. Reads are left out, since watches and polls would
// bury the writes that tests judge by, but for how the test operator asks for what it works on: a list once it is answered, a
// watch when it begins and when it is over. Bodies are left out: Metadata has verb, user, userAgent, objectRef and code.
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
