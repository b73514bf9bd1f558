/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the test broker offers. */
#include <fcntl.h>
#include <sys/mman.h>

#include "broker.h"
#include "must.h"

struct geometry broker_geometry(const struct broker_options *o)
{
	struct geometry g = o->geometry;
	struct lane_offsets offsets;

	g.page_size = g.page_size ? g.page_size : 4096;
	g.queues = o->queues ? o->queues : 1;
	g.ring_size = g.ring_size ? g.ring_size : 256;
	g.pkt_slots = g.pkt_slots ? g.pkt_slots : 128;
	g.pkt_headroom = g.pkt_headroom ? g.pkt_headroom : 128;
	g.pkt_stride = g.pkt_stride ? g.pkt_stride : 27 * 64;
	must(geometry_derive(&g, &offsets) == 0, "geometry");
	g.size = offsets.size;
	return g;
}

int broker_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("dray-link", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	must(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "memfd");
	must(fallocate(fd, 0, 0, (off_t)size) == 0, "fallocate");
	must(fcntl(fd, F_ADD_SEALS, seals) == 0, "seals");
	return fd;
}
