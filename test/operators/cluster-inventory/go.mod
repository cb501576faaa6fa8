module ctrlmesh.io/test/operators/cluster-inventory

go 1.26.0

require sigs.k8s.io/cluster-inventory-api v0.1.0
