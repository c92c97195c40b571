"""What only stores with the S3 API need: s3api of a Swift, Ceph's RGW, SeaweedFS and others."""
