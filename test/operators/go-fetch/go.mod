module ctrlmesh.io/test/operators/go-fetch

go 1.26.0
