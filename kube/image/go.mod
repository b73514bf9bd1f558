module github.com/drayage/dray/kube/image

go 1.23.0
