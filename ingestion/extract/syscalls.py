"""What a child that reads strangers' files may never ask of the kernel: numbers by architecture (x86_64, aarch64; None: it has none)."""

Numbers = tuple[int | None, int | None]

# Whatever came to the kernel later than this is answered as on a kernel that does not have it: libraries fall back.
NEWEST = 450

NETWORK: dict[str, Numbers] = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199),
    "accept4": (288, 242), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
FORKS: dict[str, Numbers] = {"fork": (57, None), "vfork": (58, None)}
PROGRAMS: dict[str, Numbers] = {"execve": (59, 221)}
OTHER_PROCESSES: dict[str, Numbers] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272), "process_mrelease": (448, 448), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "get_robust_list": (274, 100),
    # The parent kills the process group, and the child shall not leave it.
    "setpgid": (109, 154), "setsid": (112, 157),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
# Landlock knows nothing of these, and the file that is lent may be the stored one itself, under a second name.
FILES: dict[str, Numbers] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None),
    "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "truncate": (76, 45), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # They see the names in any folder.
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # Bytes in memory that neither the limit of memory nor that of files sees.
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
}  # fmt: skip
SYSTEM: dict[str, Numbers] = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "syslog": (103, 116), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "personality": (135, 92), "vhangup": (153, 58), "uselib": (134, None), "ustat": (136, None), "sysfs": (139, None),
    "lookup_dcookie": (212, 18), "setrlimit": (160, 164), "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145),
    "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "capset": (126, 91), "execveat": (322, 281),
    # They use up what all processes share, or hold all of them up.
    "io_setup": (206, 0), "sync": (162, 81), "syncfs": (306, 267),
}  # fmt: skip

# Judged by their arguments, in seccomp.py; clone3 hides its own behind a pointer, and libraries do without it.
CLONE, CLONE3, KILL, TGKILL, PRLIMIT, IOCTL, PRCTL = (56, 220), (435, 435), (62, 129), (234, 131), (302, 261), (16, 29), (157, 167)
FCNTL, FALLOCATE = (72, 25), (285, 47)
