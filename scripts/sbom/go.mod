module github.com/drayage/dray/scripts/sbom

go 1.23.0

require (
	github.com/CycloneDX/cyclonedx-go v0.11.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2
)

require golang.org/x/text v0.14.0 // indirect
