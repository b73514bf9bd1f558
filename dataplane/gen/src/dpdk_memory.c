/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping descriptors of EAL's memory. */
#include "dpdk_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <rte_memory.h>

/* with --single-file-segments there is one for each kind of pages and NUMA node */
#define DESCRIPTORS 16
#define FROM 64 /* above the descriptors that are opened and closed meanwhile */

static struct {
	int number, kept;
} all[DESCRIPTORS];
static unsigned n;

static int keep(const struct rte_memseg_list *list, const struct rte_memseg *segment, void *of)
{
	int fd = list->external ? -1 : rte_memseg_get_fd_thread_unsafe(segment);

	(void)of;
	for (unsigned i = 0; i < n; i++)
		if (all[i].number == fd)
			return 0;
	if (fd < 0 || n == DESCRIPTORS)
		return 0;
	all[n].number = fd;
	all[n].kept = fcntl(fd, F_DUPFD_CLOEXEC, FROM);
	n += all[n].kept >= 0;
	return 0;
}

void dpdk_memory_keep(void)
{
	(void)rte_memseg_walk(keep, NULL);
}

void dpdk_memory_restore(void)
{
	for (unsigned i = 0; i < n; i++)
		if (fcntl(all[i].number, F_GETFD) < 0 && errno == EBADF)
			(void)dup3(all[i].kept, all[i].number, O_CLOEXEC);
}
