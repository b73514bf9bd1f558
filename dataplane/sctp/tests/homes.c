/* SPDX-License-Identifier: Apache-2.0 */
/* Several addresses: sctp_bindx, sctp_connectx, the lists of both; a path that fails. */
#include "rig.h"

static void expect(const struct sockaddr *addresses, int count, int end)
{
	const struct sockaddr_in *at = (const void *)addresses;
	bool seen[3] = {false};

	CHECK_EQ(count, 2);
	for (int i = 0; i < count; i++) {
		for (int link = 1; link <= 2; link++)
			seen[link] |=
				at[i].sin_addr.s_addr == rig_ip4(link, end, 0).sin_addr.s_addr;
	}
	CHECK(seen[1] && seen[2]);
}

static void check_lists(int fd, int end, int other)
{
	struct sockaddr *list;
	int count = sctp_getpaddrs(fd, 0, &list);

	expect(list, count, other);
	sctp_freepaddrs(list);
	count = sctp_getladdrs(fd, 0, &list);
	expect(list, count, end);
	sctp_freeladdrs(list);
}

static int bound(int end, int port)
{
	struct sockaddr_in both[2] = {rig_ip4(1, end, port), rig_ip4(2, end, port)};
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(sctp_bindx(fd, (struct sockaddr *)both, 2, SCTP_BINDX_ADD_ADDR), 0);
	return fd;
}

static void server(void)
{
	int listener = bound(1, PORT), fd;
	char text[16];

	CHECK_EQ(listen(listener, 5), 0);
	rig_meet();
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	check_lists(fd, 1, 2);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 5);
	rig_meet();
	CHECK_EQ(system("ip link set l1 down"), 0);
	rig_meet();
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 5);
	CHECK_EQ(send(fd, text, 5, 0), 5);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 0);
}

static void client(void)
{
	struct sockaddr_in both[2] = {rig_ip4(1, 1, PORT), rig_ip4(2, 1, PORT)};
	struct sctp_rtoinfo times = {.srto_initial = 100, .srto_min = 100, .srto_max = 200};
	/* With such times a server without a CPU for seconds, or both paths, would be given up. */
	struct sctp_initmsg init = {.sinit_max_attempts = 200};
	struct sctp_assocparams association = {.sasoc_asocmaxrxt = 200};
	struct sctp_paddrparams path = {.spp_pathmaxrxt = 200};
	struct sockaddr_in other = rig_ip4(9, 9, PORT);
	int fd = bound(2, 0);
	sctp_assoc_t id = 0;
	char text[16];

	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &times, sizeof(times)), 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init)), 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_ASSOCINFO, &association, sizeof(association)),
		 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)), 0);
	rig_meet();
	CHECK_EQ(sctp_connectx(fd, (struct sockaddr *)both, 2, &id), 0);
	CHECK(id > 0);
	check_lists(fd, 2, 1);
	CHECK_EQ(send(fd, "first", 5, 0), 5);
	rig_meet();
	rig_meet(); /* the first path is cut */
	CHECK_EQ(send(fd, "other", 5, 0), 5);
	CHECK_EQ(recv(fd, text, sizeof(text), 0), 5);
	CHECK_EQ(close(fd), 0);
	/* An address that is none of this host. */
	fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK_EQ(sctp_bindx(fd, ADDRESS(other), 1, SCTP_BINDX_ADD_ADDR), -1);
	CHECK_EQ(errno, EADDRNOTAVAIL);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &other, 7), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(close(fd), 0);
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
