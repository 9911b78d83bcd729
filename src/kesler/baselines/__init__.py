"""Methods that ShareBoost is compared with: JointBoost and mixed norms; nothing imports them."""
