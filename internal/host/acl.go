// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Entries of an access control list in the format of the kernel's extended
// attribute (linux/posix_acl_xattr.h and posix_acl.h).
const (
	aclAttribute = "system.posix_acl_access"
	aclInherited = "system.posix_acl_default"
	aclVersion   = 2

	aclOwner      = 0x01
	aclUser       = 0x02
	aclOwnerGroup = 0x04
	aclMask       = 0x10
	aclOthers     = 0x20

	aclAll    = 7 // read, write, enter
	aclLook   = 5 // read, enter
	aclNobody = 0xffffffff
)

// ShareDir lets only the directory's owner and one other user create files in it.
// The other user cannot remove the owner's files; the owner can remove all.
func ShareDir(dir string, uid int) error { return letIn(dir, uid, 0o1700, aclAll) }

// LetIn lets one other user enter and list the directory of another.
func LetIn(dir string, uid int) error { return letIn(dir, uid, 0o700, aclLook) }

// LetConnect is LetIn, and the other user may also connect to sockets that the
// directory's owner creates in it from then on, if they may be written by its group.
func LetConnect(dir string, uid int) error {
	if err := LetIn(dir, uid); err != nil {
		return err
	}
	return addUser(dir, aclInherited, uid, aclAll)
}

func letIn(dir string, uid int, mode uint32, perm uint16) error {
	if err := unix.Chmod(dir, mode); err != nil {
		return fmt.Errorf("share %s: %w", dir, err)
	}
	return addUser(dir, aclAttribute, uid, perm)
}

// addUser sets a list of a directory: its owner, and one other user.
func addUser(dir, attribute string, uid int, perm uint16) error {
	acl := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{
		{aclOwner, aclAll, aclNobody}, {aclUser, perm, uint32(uid)}, {aclOwnerGroup, 0, aclNobody},
		{aclMask, aclAll, aclNobody}, {aclOthers, 0, aclNobody},
	} {
		acl = binary.LittleEndian.AppendUint16(acl, e.tag)
		acl = binary.LittleEndian.AppendUint16(acl, e.perm)
		acl = binary.LittleEndian.AppendUint32(acl, e.id)
	}
	err := unix.Setxattr(dir, attribute, acl, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return &Unsupported{
			What: "a directory for two users",
			Why:  "the file system of " + dir + " has no access control lists",
			Fix:  "set DRAY_STATE to a directory on tmpfs, ext4, xfs or btrfs",
		}
	}
	if err != nil {
		return fmt.Errorf("share %s with uid %d: %w", dir, uid, err)
	}
	return nil
}
