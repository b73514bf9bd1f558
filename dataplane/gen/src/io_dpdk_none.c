/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces io_dpdk.c in the static program, which links no DPDK. */
#include "io.h"

const char *io_dpdk_version(void)
{
	return "";
}

struct io *io_dpdk_open(const struct options *o, const char *name, struct io_error *error)
{
	(void)name;
	return io_fail(error,
		       "%s: this program has no DPDK: take draygen-dpdk, which is built where "
		       "libdpdk-dev is installed",
		       o->port);
}
