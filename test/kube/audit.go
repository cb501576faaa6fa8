package main

// auditPolicy records who changed what and how that ended, once a request. Reads are left out: watches and polls would
// bury the writes that tests judge by. Bodies are left out: Metadata has verb, user, userAgent, objectRef and code.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`
