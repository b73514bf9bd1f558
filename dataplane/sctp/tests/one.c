/* SPDX-License-Identifier: Apache-2.0 */
/* One-to-one sockets: accept, names, status, options, long messages, parts, ends. */
#include "rig.h"

#include <sys/uio.h>

#define LONG 65536

static char data[LONG], back[LONG];

static void check_names(int fd, int end, int other)
{
	struct sockaddr_in name;
	socklen_t size = sizeof(name);

	CHECK_EQ(getpeername(fd, ADDRESS(name), &size), 0);
	CHECK_EQ(size, sizeof(name));
	CHECK_EQ(name.sin_addr.s_addr, rig_ip4(1, other, 0).sin_addr.s_addr);
	if (other == 1)
		CHECK_EQ(ntohs(name.sin_port), PORT);
	CHECK_EQ(getsockname(fd, ADDRESS(name), &size), 0);
	if (end == 1)
		CHECK_EQ(ntohs(name.sin_port), PORT);
	CHECK(name.sin_port != 0);
}

static void check_status(int fd)
{
	struct sctp_status status = {0};
	socklen_t size = sizeof(status);

	CHECK_EQ(sctp_opt_info(fd, 0, SCTP_STATUS, &status, &size), 0);
	CHECK_EQ(size, sizeof(status));
	CHECK_EQ(status.sstat_state, SCTP_ESTABLISHED);
	CHECK_EQ(status.sstat_instrms, 5);
	CHECK_EQ(status.sstat_outstrms, 5);
	CHECK(status.sstat_rwnd > 0);
	CHECK(status.sstat_assoc_id > 0);
	CHECK_EQ(((struct sockaddr_in *)&status.sstat_primary.spinfo_address)->sin_port != 0, 1);
	CHECK(status.sstat_primary.spinfo_mtu >= 1200);
}

static void server(void)
{
	struct sctp_initmsg init = {.sinit_num_ostreams = 5, .sinit_max_instreams = 5};
	struct sctp_sndrcvinfo info;
	struct sockaddr_in from;
	socklen_t from_size = sizeof(from);
	int listener = rig_listen(SOCK_STREAM, PORT), fd, flags;
	ssize_t n;

	CHECK_EQ(setsockopt(listener, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init)), 0);
	rig_subscribe(listener, false);
	rig_meet();
	fd = accept4(listener, ADDRESS(from), &from_size, SOCK_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_EQ(from.sin_addr.s_addr, rig_ip4(1, 2, 0).sin_addr.s_addr);
	check_names(fd, 1, 2);
	rig_subscribe(fd, false);
	while ((n = rig_receive(fd, data, sizeof(data), &info, &flags)) > 0)
		CHECK_EQ(sctp_sendmsg(fd, data, (size_t)n, NULL, 0, info.sinfo_ppid, 0,
				      info.sinfo_stream, 0, 0),
			 n);
	CHECK_EQ(n, 0);
	close(fd);
	close(listener);
}

static void parts(int fd)
{
	struct sctp_sndrcvinfo info;
	struct iovec out[2] = {{data, 100}, {data + 100, 200}};
	char peeked[8];
	int flags = 0;

	rig_fill(data, 300, 9);
	CHECK_EQ(writev(fd, out, 2), 300);
	CHECK_EQ(recv(fd, peeked, sizeof(peeked), MSG_PEEK), 8);
	CHECK(memcmp(peeked, data, 8) == 0);
	/* A small buffer gets a part, without MSG_EOR; the rest follows. */
	CHECK_EQ(sctp_recvmsg(fd, back, 120, NULL, NULL, &info, &flags), 120);
	CHECK(!(flags & MSG_EOR));
	flags = 0;
	CHECK_EQ(sctp_recvmsg(fd, back + 120, sizeof(back) - 120, NULL, NULL, &info, &flags), 180);
	CHECK(flags & MSG_EOR);
	CHECK(rig_is(back, 300, 9));
	CHECK_EQ(write(fd, data, 10), 10);
	CHECK_EQ(read(fd, back, sizeof(back)), 10);
	CHECK_EQ(send(fd, data, 11, 0), 11);
	CHECK_EQ(recv(fd, back, sizeof(back), 0), 11);
}

static void long_messages(int fd)
{
	static const size_t sizes[] = {1, 1452, 9000, 40000, LONG};
	struct sctp_sndrcvinfo info;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int flags = 0;

		rig_fill(data, sizes[i], i);
		CHECK_EQ(sctp_sendmsg(fd, data, sizes[i], NULL, 0, htonl(60), 0, 4, 0, 0),
			 sizes[i]);
		CHECK_EQ(sctp_recvmsg(fd, back, sizeof(back), NULL, NULL, &info, &flags), sizes[i]);
		CHECK(flags & MSG_EOR);
		CHECK_EQ(info.sinfo_stream, 4);
		CHECK_EQ(ntohl(info.sinfo_ppid), 60);
		CHECK(rig_is(back, sizes[i], i));
	}
}

static void options(int fd)
{
	struct sctp_rtoinfo times = {.srto_initial = 500, .srto_min = 200, .srto_max = 3000},
			    got = {0};
	struct sctp_paddrparams path = {.spp_hbinterval = 1234, .spp_flags = SPP_HB_ENABLE};
	struct sctp_assocparams association = {.sasoc_asocmaxrxt = 7};
	struct sctp_event event = {.se_type = SCTP_STREAM_RESET_EVENT, .se_on = 1};
	int on = 1, value = 0;
	socklen_t size = sizeof(got);

	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &times, sizeof(times)), 0);
	CHECK_EQ(getsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &got, &size), 0);
	CHECK_EQ(got.srto_max, 3000);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof(on)), 0);
	size = sizeof(value);
	CHECK_EQ(getsockopt(fd, IPPROTO_SCTP, SCTP_NODELAY, &value, &size), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof(path)), 0);
	path.spp_hbinterval = 0;
	size = sizeof(path);
	CHECK_EQ(getsockopt(fd, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, &size), 0);
	CHECK_EQ(path.spp_hbinterval, 1234);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_ASSOCINFO, &association, sizeof(association)),
		 0);
	size = sizeof(association);
	CHECK_EQ(getsockopt(fd, IPPROTO_SCTP, SCTP_ASSOCINFO, &association, &size), 0);
	CHECK_EQ(association.sasoc_asocmaxrxt, 7);
	size = sizeof(value);
	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size), 0);
	CHECK_EQ(value, SOCK_STREAM);
	/* What it does not have is an error, never silence. */
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof(event)), -1);
	CHECK_EQ(errno, ENOPROTOOPT);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTO_ASCONF, &on, sizeof(on)), -1);
	CHECK_EQ(errno, ENOPROTOOPT);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2), -1);
	CHECK_EQ(errno, ENOPROTOOPT);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &times, 3), -1);
	CHECK_EQ(errno, EINVAL);
}

static void unconnected(void)
{
	struct sctp_status status = {0};
	socklen_t size = sizeof(status);
	struct sockaddr_in name;
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(recv(fd, back, 1, 0), -1);
	CHECK_EQ(errno, ENOTCONN);
	CHECK_EQ(send(fd, back, 1, 0), -1);
	CHECK_EQ(errno, ENOTCONN);
	CHECK_EQ(getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &status, &size), -1);
	CHECK_EQ(errno, EINVAL);
	size = sizeof(name);
	CHECK_EQ(getpeername(fd, ADDRESS(name), &size), -1);
	CHECK_EQ(errno, ENOTCONN);
	CHECK_EQ(accept(fd, NULL, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(close(fd), 0);
}

static void client(void)
{
	struct sctp_initmsg init = {.sinit_num_ostreams = 5, .sinit_max_instreams = 5};
	struct sockaddr_in to = rig_ip4(1, 1, PORT);
	struct timeval short_time = {.tv_usec = 50000};
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init)), 0);
	rig_subscribe(fd, false);
	rig_meet();
	unconnected();
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), 0);
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), -1);
	CHECK_EQ(errno, EISCONN);
	check_names(fd, 2, 1);
	check_status(fd);
	options(fd);
	parts(fd);
	long_messages(fd);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof(short_time)), 0);
	CHECK_EQ(recv(fd, back, 1, 0), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(shutdown(fd, SHUT_WR), 0);
	CHECK_EQ(recv(fd, back, 1, 0), 0);
	CHECK_EQ(close(fd), 0);
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
