"""OpenCL: `driver` behind the protocol of devices, `opened` a device and its memory, `program` what it runs."""
