module ctrlmesh.io/test/real-node/pause

go 1.26.0
