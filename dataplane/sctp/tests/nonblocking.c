/* SPDX-License-Identifier: Apache-2.0 */
/* connect, accept, send and receive with O_NONBLOCK, under poll and edge-triggered epoll. */
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

static char data[65536];

static int ready(int fd, short events, int ms)
{
	struct pollfd at = {.fd = fd, .events = events};

	return poll(&at, 1, ms) == 1 ? at.revents : 0;
}

static void server(void)
{
	int listener = rig_listen(SOCK_STREAM, PORT), fd;
	size_t total = 0;
	ssize_t n;

	CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(accept(listener, NULL, NULL), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ready(listener, POLLIN, 0), 0);
	rig_meet();
	CHECK_EQ(ready(listener, POLLIN, 60000), POLLIN);
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_EQ(accept(listener, NULL, NULL), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ready(listener, POLLIN, 0), 0);
	rig_meet(); /* the client has filled all buffers */
	while ((n = recv(fd, data, sizeof(data), 0)) > 0)
		total += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK(total > 100000);
	CHECK_EQ(total % 10000, 0);
}

static int error_of(int fd)
{
	int error = -1;
	socklen_t size = sizeof(error);

	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
	return error;
}

static void refused(void)
{
	struct sockaddr_in none = rig_ip4(1, 1, PORT + 1);
	struct sctp_rtoinfo times = {.srto_initial = 100, .srto_min = 100, .srto_max = 200};
	struct sctp_initmsg few = {.sinit_max_attempts = 2, .sinit_max_init_timeo = 200};

	for (int block = 0; block < 2; block++) {
		int fd = socket(AF_INET, SOCK_STREAM | (block ? 0 : SOCK_NONBLOCK), IPPROTO_SCTP);

		if (!rig_udp) {
			CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &times, sizeof(times)),
				 0);
			CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &few, sizeof(few)), 0);
		}
		CHECK_EQ(connect(fd, ADDRESS(none), sizeof(none)), -1);
		if (!block) {
			CHECK_EQ(errno, EINPROGRESS);
			if (!rig_udp) /* no answer comes */
				CHECK_EQ(ready(fd, POLLOUT, 50), 0);
			CHECK(ready(fd, POLLOUT, 60000) & POLLOUT);
			errno = error_of(fd);
		}
		CHECK_EQ(errno, rig_udp ? ECONNREFUSED : ETIMEDOUT);
		CHECK_EQ(error_of(fd), 0);
		CHECK_EQ(close(fd), 0);
	}
}

/* Fill every buffer between here and the server, then see room again after it reads. */
static void fill(int fd)
{
	struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
	int epoll = epoll_create1(0), sent = 0;

	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_EQ(epoll_wait(epoll, &event, 1, 60000), 1);
	while (send(fd, data, 10000, 0) == 10000)
		sent++;
	CHECK_EQ(errno, EAGAIN);
	CHECK(sent > 10);
	/* A moment later still: what poll reports then is tried, and refused again. */
	for (int tries = 0; tries < 300; tries++) {
		ready(fd, POLLOUT, 10);
		if (send(fd, data, 10000, 0) < 0)
			CHECK_EQ(errno, EAGAIN);
	}
	rig_meet();
	while (send(fd, data, 10000, 0) < 0) {
		CHECK_EQ(errno, EAGAIN);
		CHECK(epoll_wait(epoll, &event, 1, 60000) == 1);
	}
	close(epoll);
}

static void client(void)
{
	struct sockaddr_in to = rig_ip4(1, 1, PORT);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);

	rig_meet();
	refused();
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), -1);
	CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), -1);
	CHECK(errno == EALREADY || errno == EISCONN);
	CHECK_EQ(ready(fd, POLLOUT, 60000), POLLOUT);
	CHECK_EQ(error_of(fd), 0);
	CHECK_EQ(recv(fd, data, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	fill(fd);
	CHECK_EQ(close(fd), 0);
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
