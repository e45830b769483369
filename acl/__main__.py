"""`python -m acl` is `acl`."""

from acl.main import main

if __name__ == "__main__":
    main()
