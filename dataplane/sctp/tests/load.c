/* SPDX-License-Identifier: Apache-2.0 */
/* Many sockets at once, and sockets that are closed, and a process that ends, with data under way.
 */
#include "rig.h"

#include <pthread.h>

#define SOCKETS 100
#define BURST 2000
#define THREADS 8

static char data[2000];

static void drain(int fd, int messages)
{
	char got[4000];
	ssize_t n;
	int count = 0;

	while ((n = recv(fd, got, sizeof(got), 0)) > 0) {
		CHECK_EQ(n, 1000);
		CHECK(rig_is(got, 1000, (unsigned)count));
		count++;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(count, messages);
	CHECK_EQ(close(fd), 0);
}

static void server(void)
{
	int listener = rig_listen(SOCK_STREAM, PORT), fds[SOCKETS], fd;
	char text[4];

	rig_meet();
	for (int i = 0; i < SOCKETS; i++) {
		fds[i] = accept(listener, NULL, NULL);
		CHECK(fds[i] >= 0);
	}
	for (int i = 0; i < SOCKETS; i++) {
		CHECK_EQ(recv(fds[i], text, 4, 0), 4);
		CHECK_EQ(send(fds[i], text, 4, 0), 4);
	}
	for (int i = 0; i < SOCKETS; i++)
		CHECK_EQ(recv(fds[i], text, 4, 0), 0);
	for (int i = 0; i < SOCKETS; i++)
		CHECK_EQ(close(fds[i]), 0);
	drain(accept(listener, NULL, NULL), BURST);
	drain(accept(listener, NULL, NULL), 100);
	for (int i = 0; i < THREADS; i++)
		drain(accept(listener, NULL, NULL), 0);
	fd = accept(listener, NULL, NULL);
	/* Closed while the peer sends. */
	CHECK_EQ(recv(fd, data, sizeof(data), 0), 1000);
	CHECK_EQ(close(fd), 0);
	rig_meet();
	drain(accept(listener, NULL, NULL), 150); /* sent by a process that ended at once */
}

static void many(void)
{
	int fds[SOCKETS];
	char text[4];

	for (int i = 0; i < SOCKETS; i++)
		fds[i] = rig_connect(PORT);
	for (int i = 0; i < SOCKETS; i++)
		CHECK_EQ(send(fds[i], &i, 4, 0), 4);
	for (int i = 0; i < SOCKETS; i++) {
		CHECK_EQ(recv(fds[i], text, 4, 0), 4);
		CHECK(memcmp(text, &i, 4) == 0);
		CHECK_EQ(close(fds[i]), 0);
	}
}

static void burst(int messages)
{
	int fd = rig_connect(PORT);

	for (int i = 0; i < messages; i++) {
		rig_fill(data, 1000, (unsigned)i);
		CHECK_EQ(send(fd, data, 1000, 0), 1000);
	}
	CHECK_EQ(close(fd), 0); /* nothing of it is lost */
}

static void *open_and_close(void *unused)
{
	for (int i = 0; i < 20; i++) {
		int fd = socket(AF_INET, i % 2 ? SOCK_STREAM : SOCK_SEQPACKET, IPPROTO_SCTP);

		CHECK(fd >= 0);
		CHECK_EQ(close(fd), 0);
	}
	CHECK_EQ(close(rig_connect(PORT)), 0);
	return unused;
}

static void threads(void)
{
	pthread_t all[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&all[i], NULL, open_and_close, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(all[i], NULL), 0);
}

/* The other end closes while this one sends: an error, no hang. */
static void against_closed(void)
{
	int fd = rig_connect(PORT), sent = 0;

	while (send(fd, data, 1000, MSG_NOSIGNAL) == 1000)
		CHECK(sent++ < 100000);
	CHECK(errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN);
	CHECK_EQ(close(fd), 0);
}

static void client(void)
{
	rig_meet();
	many();
	burst(BURST);
	burst(100);
	threads();
	against_closed();
	rig_meet();
	burst(150); /* and then this process ends */
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
