/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and descriptors of an attacker that stands in for a device. */
#include "device.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "linger.h"
#include "scribble.h"
#include "test.h"

#define STEP_MS 50

uint64_t device_any(struct device *d)
{
	/* Its low bits follow from those of the number before. */
	uint64_t r = scribble_random(&d->seed) * 0x2545f4914f6cdd1dull;

	return r >> 32 | r << 32;
}

bool device_lives(const struct device *d)
{
	return clock_ns() < d->until_ns;
}

bool device_connected(struct device *d)
{
	char byte;

	return device_lives(d) && recv(d->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

void device_count(struct device *d)
{
	atomic_fetch_add(d->attempts, 1);
}

static struct sockaddr_un address_of(const char *port, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/run/dray/links/%s/%s", port, name);
	return a;
}

bool device_connect(struct device *d, const char *port, const char *name, int type)
{
	struct sockaddr_un a = address_of(port, name);

	d->fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (connect(d->fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return true;
	device_hang_up(d);
	return false;
}

/* Wait for something to read while the life lasts. */
static bool await(struct device *d, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (device_lives(d))
		if (poll(&p, 1, STEP_MS) > 0)
			return true;
	return false;
}

bool device_accept(struct device *d, const char *port, const char *name, int type)
{
	struct sockaddr_un a = address_of(port, name);
	int listener = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	unlink(a.sun_path);
	d->fd = -1;
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 && chmod(a.sun_path, 0666) == 0 &&
	    listen(listener, 1) == 0 && await(d, listener))
		d->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return d->fd >= 0;
}

void device_hang_up(struct device *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

bool device_send(struct device *d, const void *bytes, size_t n, const int *fds, unsigned count)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * DEVICE_MOST_FDS)] = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = (struct cmsghdr *)control;

	if (count) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	return sendmsg(d->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

bool device_receive(struct device *d, void *bytes, size_t n, int *fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * DEVICE_FDS)] = {0};
	struct iovec iov = {bytes, n};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	*fd = -1;
	if (!await(d, d->fd) || recvmsg(d->fd, &m, MSG_CMSG_CLOEXEC) != (ssize_t)n)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return true;
}

int device_useless(struct device *d)
{
	switch (device_any(d) % 8) {
	case 0:
		return memfd_create("attack", MFD_CLOEXEC); /* empty */
	case 1:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 2:
		return eventfd(0, EFD_CLOEXEC);
	case 3:
		return epoll_create1(EPOLL_CLOEXEC);
	case 4:
		return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	case 5:
		return open("/", O_PATH | O_CLOEXEC);
	case 6:
		return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	default:
		return waiting_socket();
	}
}

void device_drop(int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

unsigned device_useless_some(struct device *d, int *fds)
{
	uint64_t how = device_any(d);
	unsigned count = how % 2 ? 0 : (unsigned)(how >> 8) % DEVICE_FDS;

	for (unsigned i = 0; i < count; i++)
		fds[i] = device_useless(d);
	if (count == 0 || (how >> 32) % 32)
		return count;
	while (count < DEVICE_MOST_FDS) {
		fds[count] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
		count++;
	}
	return count;
}

int device_bell(struct device *d)
{
	bool waits = device_any(d) % 32 == 0;
	int bell = eventfd(0, EFD_CLOEXEC | (waits ? 0 : EFD_NONBLOCK));

	if (waits)
		CHECK(eventfd_write(bell, UINT64_MAX - 1) == 0);
	return bell;
}

void device_call(struct device *d, int fd)
{
	static const int flags[] = {O_APPEND, O_NONBLOCK, O_ASYNC, O_DIRECT, 0};
	static const int leases[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	uint64_t how = device_any(d), value = device_any(d) >> (how >> 8) % 64;

	device_count(d);
	switch (how % 9) {
	case 0:
		(void)fcntl(fd, F_SETFL, flags[value % 5]);
		break;
	case 1:
		(void)fcntl(fd, F_SETLEASE, leases[value % 3]);
		break;
	case 2:
		(void)fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK});
		break;
	case 3:
		(void)flock(fd, LOCK_EX | LOCK_NB);
		break;
	case 4:
		(void)lseek(fd, (off_t)value, SEEK_SET);
		break;
	case 5:
		(void)setsockopt(fd, SOL_SOCKET, (int)(value % 90), &(int){(int)device_any(d)},
				 sizeof(int));
		break;
	case 6:
		(void)fcntl(fd, F_SETPIPE_SZ, (int)value);
		break;
	case 7:
		(void)!fallocate(fd, (int)(value % 0x80), 0, 4096);
		break;
	default:
		device_seal(d, fd);
	}
}

int device_memory(size_t size, uint8_t **memory)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(*memory != MAP_FAILED);
	return fd;
}

void device_seal(struct device *d, int memfd)
{
	static const int seals[] = {F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL};

	(void)fcntl(memfd, F_ADD_SEALS, seals[device_any(d) % 3]);
}

uint64_t device_size(struct device *d, uint64_t size)
{
	uint64_t how = device_any(d);

	switch (how % 32) {
	case 0:
		return size / 2;
	case 1:
		return 2 * size;
	case 2:
		return device_any(d) >> (how >> 8) % 64;
	default:
		return size;
	}
}

void device_take_back(struct device *d, int memfd, size_t size)
{
	device_count(d);
	if (device_any(d) % 2)
		(void)!ftruncate(memfd, 0);
	else
		(void)!fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
	while (device_connected(d))
		usleep(1000);
}
