/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake by hand. */
#include "rawend.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "test.h"

static unsigned expect(struct rawend *e, enum wire_type type, struct wire_message *m, int *fds)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	unsigned count;

	CHECK(poll(&p, 1, 20000) == 1);
	CHECK_EQ(wire_receive(e->fd, m, fds, &count, FROM_BROKER), 0);
	CHECK_EQ(m->header.type, type);
	return count;
}

struct rawend rawend_join(const char *directory, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct rawend e = {.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
	struct lane_offsets offsets;
	struct wire_message m;
	int fds[WIRE_MAX_FDS];
	unsigned count;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
	CHECK_EQ(connect(e.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	wire_begin(&m, FROM_END, WIRE_HELLO, 0);
	m.hello.features = FEATURES_KNOWN;
	strcpy(m.hello.port, name);
	m.hello.clock = CLOCK_KIND_HERE;
	CHECK_EQ(wire_send(e.fd, &m, NULL, 0), 0);
	expect(&e, WIRE_WELCOME, &m, fds);
	close(fds[0]);
	count = expect(&e, WIRE_OFFER, &m, fds);
	e.offer = m.offer;
	e.generation = m.header.generation;
	e.memfd = fds[0];
	memcpy(e.bells, fds + 1, (count - 1) * sizeof(int));
	CHECK_EQ(geometry_check(&e.offer.geometry, &offsets), 0);
	e.memory =
		mmap(NULL, e.offer.geometry.size, PROT_READ | PROT_WRITE, MAP_SHARED, e.memfd, 0);
	CHECK(e.memory != MAP_FAILED);
	wire_begin(&m, FROM_END, WIRE_MAPPED, e.generation);
	struct stat st;
	CHECK_EQ(fstat(e.memfd, &st), 0);
	m.mapped.inode = st.st_ino;
	CHECK_EQ(wire_send(e.fd, &m, NULL, 0), 0);
	expect(&e, WIRE_SEALED, &m, fds);
	wire_begin(&m, FROM_END, WIRE_ACTIVE, e.generation);
	CHECK_EQ(wire_send(e.fd, &m, NULL, 0), 0);
	lane_view_init(&e.tx, e.memory, &e.offer.geometry, &offsets, e.offer.side, 0,
		       e.offer.features);
	lane_view_init(&e.rx, e.memory, &e.offer.geometry, &offsets, 1 - e.offer.side, 0,
		       e.offer.features);
	return e;
}

void rawend_leave(struct rawend *e)
{
	munmap(e->memory, e->offer.geometry.size);
	close(e->memfd);
	for (uint32_t q = 0; q < e->offer.queues; q++)
		close(e->bells[q]);
	close(e->fd);
}
