/* SPDX-License-Identifier: Apache-2.0 */
/* Take over the memory of a generation, trusting neither the peer nor the broker. */
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rights.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define SEALS_AT_ONCE (F_SEAL_SHRINK | F_SEAL_GROW)
#define SEALS_LIVE (SEALS_AT_ONCE | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/*
 * Whether the memory is a device's, as a virtual machine sees it: a resource file of sysfs. It has
 * no seals and needs none: no process can resize it or punch holes, and mapping it maps every page.
 */
static bool is_device(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == SYSFS_MAGIC;
}

static int check_memory(int fd, uint64_t size, uint64_t *inode)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size != size)
		return -EPROTO;
	*inode = st.st_ino;
	if (is_device(fd))
		return 0;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS_AT_ONCE) != SEALS_AT_ONCE)
		return -EPERM;
	return 0;
}

static int check_bell(int fd)
{
	int value;
	socklen_t length = sizeof(value);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) < 0 || value != AF_UNIX)
		return -EPROTO;
	length = sizeof(value);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) < 0 || value != SOCK_SEQPACKET)
		return -EPROTO;
	return 0;
}

/* Map the memory between two inaccessible pages, aligned to its page size. */
static int map_guarded(struct generation *gen, const struct geometry *g)
{
	uint64_t page = g->page_size, span = g->size + 3 * page;
	uint8_t *reserved =
		mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *start;

	if (reserved == MAP_FAILED)
		return -errno;
	gen->map = reserved;
	gen->map_size = span;
	start = (uint8_t *)(((uintptr_t)reserved + 2 * page - 1) & ~(uintptr_t)(page - 1));
	if (mmap(start, g->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, gen->memfd, 0) ==
	    MAP_FAILED)
		return -errno;
	gen->memory = start;
	(void)madvise(start, g->size, MADV_DONTFORK);
	if (g->page_size == LAYOUT_PAGE)
		(void)madvise(start, g->size,
			      MADV_HUGEPAGE); /* a wish: memory is as correct without */
	return 0;
}

/* Take over what came with an offer. NULL: no memory, and all is closed. */
static struct generation *take_over(uint32_t number, int *fds, unsigned count,
				    struct discarder *discarder)
{
	struct generation *gen = generation_new(DRAY_LINK_SHM, number);

	if (!gen) {
		discard_all(discarder, fds, count);
		return NULL;
	}
	gen->memfd = fds[0];
	for (unsigned q = 0; q + 1 < count; q++)
		gen->bells[q] = fds[q + 1];
	gen->discarder = discarder;
	return gen;
}

/* Check the bells, and see whether descriptors can be in them. */
static int take_bells(struct generation *gen)
{
	bool refused = true;

	for (unsigned q = 0; q < gen->queues; q++) {
		int ret = check_bell(gen->bells[q]);

		if (ret)
			return ret;
		refused &= rights_refuse(gen->bells[q]);
	}
	if (refused)
		gen->discarder = NULL;
	return 0;
}

int shm_map(const struct wire_offer *offer, uint32_t number, int *fds, unsigned count,
	    struct discarder *discarder, struct generation **out)
{
	struct generation *gen = take_over(number, fds, count, discarder);
	struct lane_offsets offsets;
	int ret;

	if (!gen)
		return -ENOMEM;
	gen->queues = offer->queues;
	ret = geometry_check(&offer->geometry, &offsets);
	if (ret == 0 && offer->geometry.queues != offer->queues)
		ret = -EINVAL;
	if (ret == 0)
		ret = check_memory(gen->memfd, offer->geometry.size, &gen->inode);
	if (ret == 0)
		ret = take_bells(gen);
	if (ret == 0)
		ret = map_guarded(gen, &offer->geometry);
	if (ret) {
		generation_free(gen);
		return ret;
	}
	gen->packet_max = offer->geometry.pkt_stride - offer->geometry.pkt_headroom;
	gen->packet_slots = offer->geometry.pkt_slots;
	if (offer->geometry.msg_slots && (offer->features & FEATURE_MESSAGES))
		gen->message_max = offer->geometry.msg_stride - offer->geometry.msg_headroom;
	*out = gen;
	return 0;
}

/*
 * Until the seals were there, the peer could punch holes. Populating fills them, at the expense of
 * this process's control group: which may be killed for it.
 */
int shm_check_sealed(int memfd, uint64_t size)
{
	struct stat st;
	int seals;

	if (is_device(memfd))
		return 0;
	seals = fcntl(memfd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS_LIVE) != SEALS_LIVE)
		return -EPERM;
	if (fstat(memfd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_blocks * 512 < size ? -ENODATA : 0;
}

int shm_populate(struct generation *gen, const struct geometry *geometry)
{
	if (is_device(gen->memfd))
		return 0;
	return madvise(gen->memory, geometry->size, MADV_POPULATE_WRITE) < 0 ? -errno : 0;
}

static void destroy_lane(struct dray_owner *owner)
{
	if (owner->ops->recv)
		rx_lane_free((struct rx_lane *)owner);
	else
		tx_lane_free((struct tx_lane *)owner);
}

int shm_make_lanes(struct generation *gen, const struct wire_offer *offer, unsigned q,
		   const struct lane_options *tx_options, const struct lane_options *rx_options)
{
	struct lane_offsets offsets;
	struct lane_view view;
	struct tx_lane *tx;
	struct rx_lane *rx;
	int ret = geometry_check(&offer->geometry, &offsets);

	if (ret)
		return ret;
	gen->destroy_owner = destroy_lane;
	lane_view_init(&view, gen->memory, &offer->geometry, &offsets, offer->side, q,
		       offer->features);
	ret = tx_lane_new(&view, tx_options, &tx);
	if (ret)
		return ret;
	gen->tx[q] = &tx->owner;
	lane_view_init(&view, gen->memory, &offer->geometry, &offsets, 1 - offer->side, q,
		       offer->features);
	ret = rx_lane_new(&view, rx_options, &rx);
	if (ret)
		return ret;
	gen->rx[q] = &rx->owner;
	return 0;
}
