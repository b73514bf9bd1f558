/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets with unsent data, whose receiver is deaf. */
#include "linger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* A server that accepts, and never reads. */
static struct {
	int listener, accepted[512];
	unsigned n;
	struct sockaddr_in address;
} deaf;

void deaf_begin(void)
{
	socklen_t length = sizeof(deaf.address);
	int small = 4096;

	deaf.n = 0;
	deaf.address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	deaf.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(setsockopt(deaf.listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	CHECK_EQ(bind(deaf.listener, (struct sockaddr *)&deaf.address, length), 0);
	CHECK_EQ(listen(deaf.listener, 8), 0);
	CHECK_EQ(getsockname(deaf.listener, (struct sockaddr *)&deaf.address, &length), 0);
}

/* The connections are reset, so closing the other ends no longer waits. */
void deaf_end(void)
{
	while (deaf.n)
		close(deaf.accepted[--deaf.n]);
	close(deaf.listener);
}

static int linger(int fd, int seconds)
{
	struct linger l = {.l_onoff = seconds > 0, .l_linger = seconds};

	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

int waiting_socket(void)
{
	static const char bytes[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = sizeof(bytes);

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&deaf.address, sizeof(deaf.address)), 0);
	CHECK(deaf.n < sizeof(deaf.accepted) / sizeof(*deaf.accepted));
	deaf.accepted[deaf.n++] = accept4(deaf.listener, NULL, NULL, SOCK_CLOEXEC);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(linger(fd, LINGER_S), 0);
	return fd;
}

void stop_waiting(int fd)
{
	(void)linger(fd, 0); /* no socket does not wait anyway */
}

bool attach_to(int bell, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	char one = 1;
	struct iovec iov = {&one, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(bell, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

bool attach(int bell)
{
	int fd = waiting_socket();
	bool sent = attach_to(bell, fd);

	if (!sent)
		stop_waiting(fd);
	close(fd);
	return sent;
}
