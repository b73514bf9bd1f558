/* SPDX-License-Identifier: Apache-2.0 */
/* IPv6, of both styles, and an IPv4 peer of an IPv6 socket. */
#include "rig.h"

static int listening(int style, int port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, style, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, ADDRESS(at), sizeof(at)), 0);
	CHECK_EQ(listen(fd, 5), 0);
	return fd;
}

static void server(void)
{
	int one = listening(SOCK_STREAM, PORT), many = listening(SOCK_SEQPACKET, PORT + 1), fd;
	struct sockaddr_in6 from, peer = rig_ip6(2, 0);
	socklen_t size = sizeof(from);
	char text[16];

	rig_meet();
	fd = accept(one, ADDRESS(from), &size);
	CHECK(fd >= 0);
	CHECK_EQ(from.sin6_family, AF_INET6);
	CHECK(memcmp(&from.sin6_addr, &peer.sin6_addr, 16) == 0);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 5);
	CHECK_EQ(send(fd, text, 5, 0), 5);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0);
	size = sizeof(from);
	CHECK_EQ(recvfrom(many, text, sizeof(text), 0, ADDRESS(from), &size), 4);
	CHECK(memcmp(&from.sin6_addr, &peer.sin6_addr, 16) == 0);
	CHECK_EQ(sendto(many, text, 4, 0, ADDRESS(from), size), 4);
	rig_meet();
	rig_meet(); /* the association has ended */
	from = (struct sockaddr_in6){0};
	size = sizeof(from);
	fd = accept(one, ADDRESS(from), &size);
	CHECK(fd >= 0);
	CHECK_EQ(size, sizeof(from));
	CHECK_EQ(from.sin6_family, AF_INET6);
	CHECK(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 3);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0);
}

static void client(void)
{
	struct sockaddr_in6 to = rig_ip6(1, PORT), many = rig_ip6(1, PORT + 1);
	int fd = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP);
	char text[16];

	CHECK(fd >= 0);
	rig_meet();
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), 0);
	CHECK_EQ(send(fd, "hello", 5, 0), 5);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 5);
	CHECK_EQ(close(fd), 0);
	fd = socket(AF_INET6, SOCK_SEQPACKET, IPPROTO_SCTP);
	CHECK_EQ(sendto(fd, "many", 4, 0, ADDRESS(many), sizeof(many)), 4);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 4);
	CHECK_EQ(close(fd), 0);
	rig_meet();
	fd = rig_connect(PORT);
	CHECK_EQ(send(fd, "ip4", 3, 0), 3);
	CHECK_EQ(shutdown(fd, SHUT_WR), 0);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0);
	CHECK_EQ(close(fd), 0);
	rig_meet();
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
